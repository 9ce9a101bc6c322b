import CUV
import LarderEngine
import Platform

/// The daemon as a library: serves a larder over a Unix-domain socket until it is told to stop.
package enum Server {
    package enum Failure: Error, CustomStringConvertible {
        case larder(LarderError)
        /// The path cannot be that of a socket.
        case socketPath(String)
        /// Another process uses the socket.
        case socketTaken(String)
        /// The system could not make the socket.
        case socket(String)
        /// The process may not open as many descriptors as the larder needs.
        case descriptors(String)
        /// The process may not start as many threads as it needs.
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

    /// Serves until SIGTERM, SIGINT, SIGHUP, SHUTDOWN or `stopper`. Then it accepts nothing more, finishes what was
    /// read, commits, syncs and returns. Blocks the calling thread.
    /// - Parameter onReady: called once connections are accepted, with a closure that stops the server from any thread.
    package static func run(
        _ configuration: ServerConfiguration, log: Log,
        onReady: (@escaping @Sendable (String) -> Void) -> Void = { _ in }
    ) throws(Failure) {
        ProcessSettings.ignoreWriteSignals()
        // Later nobody could be told.
        let threads = otherThreads + configuration.threads + configuration.limits.coldThreads
        if let shortage = WorkThread.shortage(ofThreads: threads) {
            throw .threads("larderd cannot start: \(shortage)")
        }
        var configuration = configuration
        let descriptors = try DescriptorBudget.take(for: &configuration, log: log)
        var options = configuration.engine
        options.onDamage = .salvage
        // Absolute, because other processes that look for it have other working directories.
        options.holderSocket = FileSystem.absolute(configuration.socketPath)
        options.onEvent = { event in log.write(Log.Level(rawValue: event.level.rawValue) ?? .info, event.message) }
        let engine: Engine
        do throws(LarderError) {
            engine = try Engine.open(configuration.directory, options: options)
        } catch {
            throw .larder(error)
        }
        defer { engine.shutdown() }
        let socket: SocketFile
        do throws(SocketFile.Failure) {
            socket = try SocketFile(path: configuration.socketPath)
        } catch {
            throw Failure(error)
        }
        defer { socket.remove() }
        if socket.hasMadeDirectory {
            log.info("made the socket's directory \(FileSystem.parent(socket.path)), which was missing, with mode 0700")
        }
        try serve(configuration, descriptors, engine, socket.descriptor, log, onReady)
        log.info("stopped")
    }

    /// Besides those for event loops and cold reads: slow commands and counts, commits, syncs, checkpoints, maintenance,
    /// merging, the replay at the start, LevelDB's, and some in reserve.
    private static let otherThreads = 14

    private static func serve(
        _ configuration: ServerConfiguration, _ descriptors: DescriptorBudget, _ engine: Engine, _ descriptor: Int32,
        _ log: Log, _ onReady: (@escaping @Sendable (String) -> Void) -> Void
    ) throws(Failure) {
        let stopper = Stopper(log)
        let state: ServerState
        do throws(LarderError) {
            state = try ServerState(
                engine: engine, limits: configuration.limits, socketPath: configuration.socketPath,
                threadCount: configuration.threads, password: configuration.password,
                clientsPossible: descriptors.clientsPossible, log: { log.write($0, $1) },
                beforeColdSlice: configuration.beforeColdSlice, beforeWork: configuration.beforeWork,
                onStopRequest: { stopper.stop($0) })
        } catch {
            throw .larder(error)
        }
        let pools = WorkerPools(coldThreads: configuration.limits.coldThreads)
        let workers = pools.slow
        state.runInBackground { workers.submit($0) }
        let loops = (0..<max(1, min(64, configuration.threads))).map { _ in
            EventLoop(server: state, pools: pools, log: log)
        }
        let listener = Listener(descriptor, loops: loops, server: state, log: log)
        if configuration.handlesSignals { ProcessSettings.unblockStopSignals() }
        let signals = configuration.handlesSignals ? SignalWatch(loops[0]) { stopper.stop($0) } : nil
        state.notifier.runInBackground { [weak workers] work in
            // Without the pool nobody is left who could be told.
            workers?.submit(work)
        }
        loops[0].onTick = {
            listener.tick()
            state.notifier.tick()
            state.rates.note(at: engine.monotonic(), commands: state.statistics.total)
        }
        loops[0].onStopping = {
            listener.close()
            signals?.close()
        }
        stopper.start(loops)
        let threads = loops.dropFirst().enumerated().map { index, loop in
            WorkThread(name: "larder-loop-\(index + 1)") { loop.run() }
        }
        log.info(
            "larderd \(Version.text) ready: socket \(configuration.socketPath), larder \(engine.directory), "
                + "durability \(engine.options.durability.rawValue), \(loops.count) event loop(s)")
        log.info(
            "new databases get the policy '\(engine.options.defaultPolicy)' (--policy): entries are not kept longer "
                + "unless they or their database say so")
        state.notifier.onTooManyDeadlines { most in
            log.warning(
                "more than \(most) entries have deadlines of their own: the others' expiry is not told in time "
                    + "(--max-watched-deadlines)")
        }
        if !state.notifier.setEvents(configuration.keyspaceEvents) {
            log.warning("notify-keyspace-events '\(configuration.keyspaceEvents)' is not understood")
        }
        openDatabases(engine, configuration.limits.databasesOpenedAtStart, workers)
        onReady { stopper.stop($0) }
        loops[0].run()
        for thread in threads { thread.join() }
        _ = state.scripts.kill()
        pools.stop()
        state.counts.stop()
        withExtendedLifetime((listener, signals, loops)) {}
    }

    /// Opens the first databases in the background, so that damage is reported now rather than at the first use, and
    /// expired entries are swept even if no client comes.
    private static func openDatabases(_ engine: Engine, _ most: Int, _ workers: WorkerPool) {
        let databases = engine.databases.prefix(most)
        guard !databases.isEmpty else { return }
        // One after the other on one thread, so that the other thread is free for commands.
        workers.submit {
            for database in databases {
                // The error is in the log, and every command to this database repeats it.
                try? database.prepare(forWriting: false)
            }
        }
    }

    /// Stops all loops, once.
    ///
    /// Thread-safe. The proof for `@unchecked Sendable`: the state is read and written with the lock held.
    private final class Stopper: @unchecked Sendable {
        private let lock = Lock()
        private let log: Log
        private var loops: [EventLoop] = []
        private var isStopped = false

        init(_ log: Log) { self.log = log }

        func start(_ loops: [EventLoop]) { lock.withLock { self.loops = loops } }

        func stop(_ reason: String) {
            let loops = lock.withLock {
                defer { isStopped = true }
                return isStopped ? [] : self.loops
            }
            guard !loops.isEmpty else { return }
            log.info("stopping: \(reason)")
            for loop in loops { loop.send(.stop) }
        }
    }
}

/// Watches SIGTERM, SIGINT and SIGHUP on a loop; SIGHUP only if the daemon's parent did not have it ignored, as nohup
/// does.
///
/// Confined to that loop.
private final class SignalWatch {
    private let handles: [UnsafeMutablePointer<uv_signal_t>]
    private let onSignal: (String) -> Void

    init(_ eventLoop: EventLoop, _ onSignal: @escaping (String) -> Void) {
        self.onSignal = onSignal
        let numbers = [SIGTERM, SIGINT] + (ProcessSettings.ignoresHangUp ? [] : [SIGHUP])
        handles = numbers.map { _ in .allocate(capacity: 1) }
        for (handle, number) in zip(handles, numbers) {
            uv_signal_init(eventLoop.loop, handle)
            // The server keeps this object for as long as the loop runs: unretained is enough.
            handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
            uv_signal_start(
                handle,
                { handle, number in
                    guard let data = handle?.pointee.data else { return }
                    Unmanaged<SignalWatch>.fromOpaque(data).takeUnretainedValue()
                        .onSignal(number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGHUP")
                }, number)
        }
    }

    deinit { for handle in handles { handle.deallocate() } }

    /// Ends the watch. From now on SIGINT ends the process, and further SIGTERM and SIGHUP change nothing: a supervisor may
    /// repeat them while the last checkpoint is running.
    func close() {
        defer { ProcessSettings.ignoreRepeatedStopSignals() }
        for handle in handles where uv_is_closing(asHandle(handle)) == 0 { uv_close(asHandle(handle), nil) }
    }
}
