import CLarderUV
import LarderEngine
import LarderPlatform
// Makes the module LarderServices available to users of this module: the log, the service manager, and socket access.
@_exported import LarderServices

/// The daemon as a library. It serves a larder on a Unix-domain socket until it is stopped.
package enum Server {
    package enum Failure: Error, CustomStringConvertible {
        case larder(LarderError)
        /// The path cannot be used for a socket.
        case socketPath(String)
        /// Another process uses the socket.
        case socketTaken(String)
        /// The system could not create the socket.
        case socket(String)
        /// The process is not allowed to open as many descriptors as the larder needs.
        case descriptors(String)
        /// The process is not allowed to start as many threads as it needs.
        case threads(String)

        package var description: String {
            switch self {
            case .larder(let error): error.description
            case .socketPath(let text), .socketTaken(let text), .socket(let text), .descriptors(let text),
                .threads(let text):
                text
            }
        }

        init(_ failure: SocketFile.Failure) {
            switch failure.kind {
            case .badPath: self = .socketPath(failure.description)
            case .taken: self = .socketTaken(failure.description)
            case .system: self = .socket(failure.description)
            }
        }
    }

    /// Serves until the server is stopped by SIGTERM, SIGINT, SIGHUP, SHUTDOWN, or the closure that `onReady` receives.
    /// Then the server reads no more input, completes the received commands, commits and syncs their writes, and
    /// returns. Blocks the calling thread.
    /// - Parameters:
    ///   - commandLine: the source of the configuration. If the command line names a configuration file, SIGHUP reloads
    ///     it instead of stopping the server.
    ///   - service: the service manager, which is notified of the server's state; nil for none.
    ///   - onReady: called when connections are accepted, with a closure that stops the server, for use by any thread.
    package static func run(
        _ configuration: ServerConfiguration, log: Log, commandLine: DaemonCommandLine? = nil,
        service: ServiceManager? = nil, onReady: (@escaping @Sendable (String) -> Void) -> Void = { _ in }
    ) throws(Failure) {
        ProcessSettings.ignoreWriteSignals()
        // Check this now: a failure to start a thread could not be reported later.
        let threads = otherThreads + configuration.threads + configuration.limits.coldThreads
        if let shortage = WorkThread.shortage(ofThreads: threads) {
            throw .threads("larderd cannot start: \(shortage)")
        }
        var configuration = configuration
        let descriptors = try DescriptorBudget.take(for: &configuration, log: log)
        var options = configuration.engine
        options.onDamage = .salvage
        options.diskBytesMax = configuration.diskBytesMax
        // Use an absolute path, because processes with other working directories connect to it.
        options.holderSocket = FileSystem.absolute(configuration.passedSocket?.path ?? configuration.socketPath)
        options.onEvent = { event in log.write(Log.Level(event.level.rawValue) ?? .info, event.message) }
        let early = try FileSystem.exists(configuration.directory) ? nil : listenBeforeCreating(configuration)
        let engine: Engine
        do throws(LarderError) {
            engine = try during("opening the larder", service) { () throws(LarderError) in
                try open(configuration, options, log)
            }
        } catch {
            early?.remove()
            throw .larder(error)
        }
        var hasServed = false
        defer {
            during("writing the last checkpoint", service) { engine.shutdown() }
            if hasServed { log.info("stopped") }
        }
        let socket = if let early { early } else { try listen(configuration) }
        defer { socket.remove() }
        configuration.socketPath = socket.path
        if let note = socket.note { log.info(note) }
        for warning in Precautions.warnings(configuration) { log.warning(warning) }
        let surroundings = Surroundings(
            commandLine: commandLine, service: service, descriptors: descriptors, socket: socket)
        try serve(configuration, surroundings, engine, log, onReady)
        hasServed = true
        log.info("writing the last checkpoint")
    }

    /// Opens the larder. A daemon that has it open, but does not reply, is stopping: it writes its last checkpoint, or
    /// was killed, and the system is freeing its memory. Waits up to a minute for its end.
    private static func open(
        _ configuration: ServerConfiguration, _ options: EngineOptions, _ log: Log
    ) throws(LarderError) -> Engine {
        var end: Int64?
        while true {
            do throws(LarderError) {
                return try Engine.open(configuration.directory, options: options)
            } catch {
                let now = MonotonicClock.milliseconds()
                guard error.code == .larderHeld, now < end ?? .max,
                    let holder = Engine.holder(of: configuration.directory), let socket = holder.socket,
                    !repliesToPing(at: socket)
                else { throw error }
                if end == nil { log.info("waiting up to 60 s for process \(holder.pid), which does not reply") }
                end = end ?? now + 60_000
                WorkThread.sleep(nanoseconds: 10_000_000)
            }
        }
    }

    /// Whether a server at a socket replies within a second. A killed process still listens, but never replies.
    private static func repliesToPing(at socket: String) -> Bool {
        let descriptor = UnixSocket.make()
        defer { close(descriptor) }
        UnixSocket.limit(descriptor, milliseconds: 1000)
        var byte: UInt8 = 0
        return UnixSocket.connect(descriptor, to: socket) == 0 && send(descriptor, "PING\r\n", 6, noSignal) == 6
            && recv(descriptor, &byte, 1, 0) == 1
    }

    private static func listen(_ configuration: ServerConfiguration) throws(Failure) -> ListeningSocket {
        do throws(SocketFile.Failure) { return try ListeningSocket(configuration) } catch { throw Failure(error) }
    }

    /// Creates the directory and the socket of a new larder; the socket may be in the directory. If creating the socket
    /// fails, removes the directory, unless the directory contains files.
    private static func listenBeforeCreating(_ configuration: ServerConfiguration) throws(Failure) -> ListeningSocket {
        // If this fails, opening the larder reports the error.
        try? FileSystem.makeDirectories(configuration.directory)
        do throws(Failure) {
            return try listen(configuration)
        } catch {
            rmdir(configuration.directory)
            throw error
        }
    }

    /// The objects that a server needs in addition to its configuration, its engine and its log.
    private struct Surroundings {
        let commandLine: DaemonCommandLine?
        let service: ServiceManager?
        let descriptors: DescriptorBudget
        let socket: ListeningSocket
    }

    private static func during<Result, Failure: Error>(
        _ status: String, _ service: ServiceManager?, _ work: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let service else { return try work() }
        return try service.during(status, work)
    }

    /// The number of threads that the process needs in addition to the event loops and the threads for cold reads: for
    /// slow commands, counts, commits, syncs, checkpoints, maintenance, merging, replay at startup, LevelDB, jemalloc.
    /// Some are in reserve.
    private static let otherThreads = 20

    private static func serve(
        _ configuration: ServerConfiguration, _ surroundings: Surroundings, _ engine: Engine, _ log: Log,
        _ onReady: (@escaping @Sendable (String) -> Void) -> Void
    ) throws(Failure) {
        let service = surroundings.service
        let stopper = Stopper(log, service)
        let state = try makeState(configuration, surroundings.descriptors, engine, log) { stopper.stop($0) }
        let pools = WorkerPools(coldThreads: configuration.limits.coldThreads)
        let workers = pools.slow
        state.runInBackground { workers.submit($0) }
        let loops = (0..<max(1, min(64, configuration.threads))).map { _ in
            EventLoop(server: state, pools: pools)
        }
        let listener = Listener(surroundings.socket.descriptor, loops: loops, server: state, log: log)
        let reload = surroundings.commandLine.flatMap {
            ConfigurationReload($0, server: state, service: service, log: log)
        }
        let signals = watchSignals(
            configuration, loops[0], onStop: { stopper.stop($0) },
            onHangUp: reload.map { reload in { pools.status.submit { reload.run() } } })
        state.notifier.start()
        let guardian = SocketGuard(surroundings.socket, listener, log)
        let report = service.map { ServiceReport($0, state, loops) }
        loops[0].onTick = {
            listener.tick()
            state.limitOutput()
            guardian.tick()
            report?.tick()
            state.statistics.sample(at: engine.monotonic())
        }
        loops[0].onStopping = { [others = loops.dropFirst()] in
            guardian.end()
            listener.close()
            // Do this before connections are closed. A client that loses its connection may start the next daemon.
            surroundings.socket.remove()
            signals?.close()
            for loop in others { loop.send(.stop) }
        }
        stopper.start(loops[0])
        engine.onReplayProgress {
            if engine.isReplayed { state.origins.begin() }
            for loop in loops { loop.send(.replayed) }
        }
        let threads = loops.dropFirst().enumerated().map { index, loop in
            WorkThread(name: "larder-loop-\(index + 1)") { loop.run() }
        }
        announce(configuration, state, surroundings.descriptors, log)
        openDatabases(engine, configuration.limits.databasesOpenedAtStart, workers)
        report?.ready()
        onReady { stopper.stop($0) }
        loops[0].run()
        for thread in threads { thread.join() }
        _ = state.scripts.kill()
        state.notifier.stop()
        pools.stop()
        state.origins.close()
        state.counts.stop()
        withExtendedLifetime((listener, signals, loops)) {}
    }

    private static func makeState(
        _ configuration: ServerConfiguration, _ descriptors: DescriptorBudget, _ engine: Engine, _ log: Log,
        _ onStopRequest: @escaping @Sendable (String) -> Void
    ) throws(Failure) -> ServerState {
        do throws(LarderError) {
            return try ServerState(
                engine: engine, limits: configuration.limits, socketPath: configuration.socketPath,
                socketAccess: configuration.socketAccess, threadCount: configuration.threads,
                password: configuration.password,
                passwordPath: configuration.passwordPath, configurationPath: configuration.filePath ?? "",
                disabledCommands: configuration.disabledCommands, rules: configuration.rules,
                connectionsMax: descriptors.forConnections, log: log,
                beforeColdSlice: configuration.beforeColdSlice, beforeWork: configuration.beforeWork,
                onStopRequest: onStopRequest)
        } catch {
            throw .larder(error)
        }
    }

    private static func watchSignals(
        _ configuration: ServerConfiguration, _ loop: EventLoop, onStop: @escaping (String) -> Void,
        onHangUp: (() -> Void)?
    ) -> SignalWatch? {
        guard configuration.handlesSignals else { return nil }
        ProcessSettings.unblockStopSignals()
        return SignalWatch(loop, onStop: onStop, onHangUp: onHangUp)
    }

    /// Logs the lines that describe the server when it is ready.
    private static func announce(
        _ configuration: ServerConfiguration, _ state: ServerState, _ descriptors: DescriptorBudget, _ log: Log
    ) {
        let engine = state.engine
        let (asked, possible) = (configuration.limits.clientsMax, state.clientsPossible)
        if asked > possible {
            log.warning(
                "at most \(possible) clients instead of \(asked) (--max-clients): the process may open "
                    + "\(descriptors.limit) descriptors (ulimit -n), of which \(descriptors.limit - possible) are reserved "
                    + "for the larder's files and for origins")
        }
        log.info(
            "larderd \(Version.text) ready: socket \(configuration.socketPath), larder \(engine.directory), "
                + "durability \(engine.options.durability.rawValue), " + counted(configuration.threads, "event loop"))
        log.info(
            "new databases get the policy '\(engine.options.defaultPolicy)' (--policy): entries are not kept longer "
                + "unless they or their database have another policy")
        log.info(
            engine.diskLimitBytes.map {
                "all files of the larder take at most \($0) bytes (--max-disk"
                    + (configuration.diskBytes == nil ? ", by default a tenth of the file system, from 16M to 8G" : "")
                    + "): the least valuable entries are evicted"
            } ?? "the larder may take all of the disk (--max-disk none)")
        if !configuration.rules.isEmpty { log.info(configuration.rules.summary) }
        if let path = configuration.filePath { log.info("options are also read from \(path) (--config)") }
        if !state.notifier.setEvents(configuration.keyspaceEvents) {
            log.warning("notify-keyspace-events '\(configuration.keyspaceEvents)' is invalid")
        }
    }

    /// Opens the first databases in the background. So damage is reported at startup instead of at the first use.
    /// Expired entries are removed even if no client uses these databases.
    private static func openDatabases(_ engine: Engine, _ most: Int, _ workers: WorkerPool) {
        // Open these databases in one piece of work. It uses one of the pool's two threads, so that the other thread is
        // free for commands.
        workers.submit {
            for database in engine.databases.prefix(most) {
                // The error was logged, and each command on this database will return it again.
                try? database.prepare(forWriting: false)
            }
        }
    }

    /// Stops the first event loop, which stops the others. Only the first call has an effect: a stop may have several
    /// reasons.
    private final class Stopper: Sendable {
        private let log: Log
        private let service: ServiceManager?
        /// The loop to stop; nil before the start, and after it was stopped.
        private let loop = Locked<EventLoop?>(nil)

        init(_ log: Log, _ service: ServiceManager?) { (self.log, self.service) = (log, service) }

        func start(_ loop: EventLoop) { self.loop.withLock { $0 = loop } }

        func stop(_ reason: String) {
            guard let loop = loop.withLock({ $0.take() }) else { return }
            log.info("stopping: \(reason)")
            service?.stopping(reason)
            loop.send(.stop)
        }
    }
}
