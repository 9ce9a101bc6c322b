import LarderEngine
import LarderPlatform
import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderServer

/// A server without sockets. It has sessions on an engine in its own directory. The test advances the clock, and
/// requests the commits.
final class SocketlessServer {
    let directory: TemporaryDirectory
    let time: ManualTimeSource
    let engine: Engine
    let state: ServerState
    let stopReasons = Recorder<String>()
    /// Messages for the clients, delivered with ``deliver()``.
    let pushes: PushQueue
    /// A weak reference to a client, because the client keeps its server alive.
    private struct Connected {
        weak var client: TestClient?
    }
    private var connected: [Connected] = []
    private var clients: [TestClient] { connected.compactMap(\.client) }

    /// - Parameters:
    ///   - policy: the policy of new databases.
    ///   - disabled: commands that are disabled for all users.
    ///   - rules: the rights of each user.
    ///   - time: the time source to use; nil for ``time``, which the test advances.
    ///   - origin: the origin that ORIGIN uses for any URL.
    convenience init(
        policy: UpdatePolicy = .lowest, limits: Limits = Limits(), password: String? = nil,
        disabled: CommandSet = CommandSet(), rules: AccessRules = AccessRules(), time: (any TimeSource)? = nil,
        origin: ScriptedOrigin? = nil, configure: (inout EngineOptions) -> Void = { _ in }
    ) throws {
        try self.init(
            try TemporaryDirectory(inMemory: true), policy, limits, configure, password, disabled, rules, time,
            origin?.factory ?? OriginTable.redis)
    }

    /// Creates a server on the larder of a server that was shut down.
    /// - Parameter clock: the clock to continue with; nil for a new one.
    convenience init(
        reopening other: SocketlessServer, limits: Limits = Limits(), origin: ScriptedOrigin? = nil,
        clock: ManualTimeSource? = nil, configure: (inout EngineOptions) -> Void = { _ in }
    ) throws {
        try self.init(
            other.directory, .lowest, limits, configure, nil, CommandSet(), AccessRules(), nil,
            origin?.factory ?? OriginTable.redis, clock)
    }

    /// Creates a server on the larder in a directory, which may be a copy of another server's one.
    /// - Parameter clock: the clock to continue with; nil for a new one.
    convenience init(
        in directory: TemporaryDirectory, policy: UpdatePolicy = .lowest, clock: ManualTimeSource? = nil,
        configure: (inout EngineOptions) -> Void = { _ in }
    ) throws {
        try self.init(
            directory, policy, Limits(), configure, nil, CommandSet(), AccessRules(), nil, OriginTable.redis, clock)
    }

    /// Stores an entry that never expires, without a command, because commands refuse to write some databases.
    func store(_ value: String, under key: String, in database: String) throws {
        try engine.database(database).commit([Key(Array(key.utf8))], loading: .none) { update in
            Array(value.utf8).withUnsafeBytes { update.put(0, payload: $0, rule: .ownNever) }
        }
    }

    private init(
        _ directory: TemporaryDirectory, _ policy: UpdatePolicy, _ limits: Limits,
        _ configure: (inout EngineOptions) -> Void, _ password: String? = nil,
        _ disabled: CommandSet = CommandSet(), _ rules: AccessRules = AccessRules(), _ time: (any TimeSource)? = nil,
        _ makeOrigin: @escaping OriginFactory = OriginTable.redis, _ clock: ManualTimeSource? = nil
    ) throws {
        self.directory = directory
        self.time = clock ?? ManualTimeSource()
        var options = ServerConfiguration.standardEngine
        options.backgroundMaintenance = false
        options.defaultPolicy = policy
        options.onDamage = .salvage
        configure(&options)
        engine = try Engine.open(directory.path + "/larder", options: options, time: time ?? self.time)
        let stopReasons = stopReasons
        state = try ServerState(
            engine: engine, limits: limits, socketPath: "/a/socket", password: password.map { Array($0.utf8) },
            disabledCommands: disabled, rules: rules, origins: makeOrigin,
            onStopRequest: { stopReasons.add($0) })
        pushes = PushQueue(state.pubsub.pending)
        pushes.deliver = { [unowned self] delivery in
            let connections = delivery.connections + (delivery.monitors?.members ?? [])
            for client in clients where connections.contains(client.session.id) {
                client.session.push(delivery.message)
            }
        }
    }

    deinit {
        state.origins.close()
        state.counts.stop()
        engine.shutdown()
    }

    /// Connects a client.
    /// - Parameter peer: the credentials of the client; nil if the system does not report them.
    func connect(as peer: PeerCredentials? = nil) -> TestClient {
        let id = state.newClientID()
        let record = ClientRecord(
            id: id, address: state.clientAddress, descriptor: -1, now: state.engine.now(), credentials: peer
        ) { _ in }
        let client = TestClient(Session(id: id, server: state, pushes: pushes, record: record), self)
        // Waking a session needs no action here, because ``deliver()`` runs woken commands.
        client.session.waits.wakeUp = {}
        connected.append(Connected(client: client))
        return client
    }

    /// Commits all applied changes, and notifies the sessions.
    func commit() {
        try? engine.pipeline.waitForAllCommits()
        deliver()
    }

    /// Releases a client: its session ends unless the test keeps another reference.
    func forget(_ client: TestClient) { connected.removeAll { $0.client === client } }

    /// Delivers messages, and lets the sessions send replies whose commits have succeeded or failed, as an event loop
    /// does.
    func deliver() {
        pushes.deliverAll()
        _ = pushes.deliverLive(upTo: .max)
        for client in clients where client.waitsUntil != nil && !client.session.waitsForOthers { client.run() }
        for client in clients { client.session.replyQueue.releaseDecided() }
    }
}

/// One connection of a ``SocketlessServer``.
final class TestClient {
    let session: Session
    private let server: SocketlessServer
    private(set) var pauses: [String] = []
    /// The number of times that a command had to move to a thread that may read the disk.
    private(set) var colds = 0
    /// The time at which a waiting command runs again, unless it is woken earlier; nil if no command waits. In
    /// milliseconds of the monotonic clock.
    private(set) var waitsUntil: Int64?

    init(_ session: Session, _ server: SocketlessServer) {
        self.session = session
        self.server = server
    }

    /// Passes bytes to the session, and runs the commands that can run. Replies wait for their commits.
    func feed(_ bytes: some Collection<UInt8>) {
        session.parser.append(Array(bytes))
        run()
    }

    /// Runs the session. Work for other threads runs at once on this thread.
    func run() {
        waitsUntil = nil
        var congestions = 0
        while true {
            var pause = CommandRunner(session).run(outputBytesMax: server.state.limits.outputBytesPause)
            while case .cold = pause {
                colds += 1
                pause = CommandRunner(session).run(
                    outputBytesMax: server.state.limits.outputBytesPause,
                    slice: CommandRunner.Slice(commandsMax: 2, until: .max))
            }
            switch pause {
            case .cold: break
            case .sliceEnded: break
            case .waiting(let until):
                waitsUntil = until
                return
            case .needsInput, .closing, .outputFull, .paused: return
            case .work(let work):
                pauses.append("work")
                session.finish(WorkResult(work, version: session.replies.version))
            case .prepare(let database, let forWriting):
                pauses.append("prepare")
                var failure: LarderError?
                do throws(LarderError) { try database.prepare(forWriting: forWriting) } catch { failure = error }
                session.finishPreparing(failure)
            case .congested:
                pauses.append("congested")
                server.commit()
                // If the journal is full, only a checkpoint helps. No background thread starts one, so start it here.
                congestions += 1
                if congestions > 1 { server.engine.maintain() }
                if congestions > 20 {
                    Issue.record("a command waits for a checkpoint that does not help")
                    return
                }
            }
        }
    }

    /// Returns the bytes that may be sent now, and removes them from the queue.
    func takeSendable() -> String {
        let count = session.replyQueue.sendableCount
        let text = session.replies.withBytes { String(decoding: $0[..<count], as: UTF8.self) }
        session.replyQueue.didSend(count)
        return text
    }

    /// Runs a command, commits, and returns the reply's bytes as text.
    func callAsFunction(_ words: [String]) -> String {
        feed(encodeRequest(words))
        server.commit()
        return takeSendable()
    }

    /// Like ``callAsFunction(_:)-([String])``, for a line of words without spaces.
    func callAsFunction(_ line: String) -> String {
        callAsFunction(line.split(separator: " ").map(String.init))
    }
}

/// The encoded forms of replies.
enum Wire {
    static let ok = "+OK\r\n"
    static let null = "$-1\r\n"
    static let null3 = "_\r\n"
    static func bulk(_ text: String) -> String { "$\(text.utf8.count)\r\n\(text)\r\n" }
    static func int(_ value: Int) -> String { ":\(value)\r\n" }
    static func error(_ text: String) -> String { "-\(text)\r\n" }
    static func array(_ elements: String...) -> String { "*\(elements.count)\r\n" + elements.joined() }
    static func bulks(_ texts: String...) -> String { "*\(texts.count)\r\n" + texts.map { bulk($0) }.joined() }
    static let syntaxError = error("ERR syntax error")
    static let notAnInteger = error("ERR value is not an integer or out of range")
    static func arity(_ name: String) -> String { error("ERR wrong number of arguments for '\(name)' command") }
}
