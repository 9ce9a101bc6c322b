// The state shared by a client, its caches and its subscriptions.

import LarderPlatform
import LarderRESP
import LarderWire
import Synchronization

/// The state of a client: the databases in use and the subscriptions. Closes everything when its last reference is
/// released.
///
/// Thread-safe.
final class ClientCore: Sendable {
    let socketPath: String
    let options: ClientOptions
    /// The client's own database.
    let own: DatabaseStore
    let hub: SubscriptionHub
    /// The hub for changes of entries. It has a separate connection, so that these changes do not delay other messages.
    /// If that connection is lost, calls do not wait for a new one: the listeners are notified of the gap.
    let changesHub: SubscriptionHub
    /// The databases in use, by name. The server's default database has one element, whether it is requested by nil or
    /// by its name.
    private let state: Locked<(stores: [String: DatabaseStore], isClosed: Bool)>
    private let gate = ConnectionGate()
    /// The running live queries; nil after the client was closed.
    private let liveLinks = Locked<[ObjectIdentifier: LiveLink]?>([:])
    /// Ends ``LarderClient/run()``.
    let ending = EndSignal()

    init(socketPath: String, options: ClientOptions) {
        self.socketPath = socketPath
        self.options = options
        own = DatabaseStore(socketPath, options.database, options, gate)
        hub = SubscriptionHub(socketPath, options, gate)
        changesHub = SubscriptionHub(socketPath, options, ConnectionGate())
        state = Locked((stores: [own.name: own], isClosed: false))
    }

    deinit { close() }

    func store(_ database: String?) -> DatabaseStore {
        state.withLock { state in
            let name = database ?? DatabaseStore.standardName
            if let store = state.stores[name] { return store }
            let store = DatabaseStore(socketPath, database, options, gate)
            if state.isClosed { store.close() }
            state.stores[name] = store
            return store
        }
    }

    /// Ends a live query when the client is closed.
    func follow(_ live: LiveLink) throws(LarderClientError) {
        let isOpen = liveLinks.withLock { links in
            links?[ObjectIdentifier(live)] = live
            return links != nil
        }
        if !isOpen {
            throw LarderClientError(.closed, "the client was closed", operation: "QUERY", socketPath: socketPath)
        }
    }

    /// Ends a live query now.
    func forget(_ live: LiveLink) {
        _ = liveLinks.withLock { $0?.removeValue(forKey: ObjectIdentifier(live)) }
        live.end(nil)
    }

    /// Whether no call is running.
    var isIdle: Bool { state.withLock { $0.stores.values.allSatisfy(\.isIdle) } }

    func close() {
        ending.set()
        let stores = state.withLock { state in
            state.isClosed = true
            return Array(state.stores.values)
        }
        // Close the hubs first: the sequences of messages and changes must end before calls of their consumers fail.
        hub.close()
        changesHub.close()
        let live = liveLinks.withLock { $0.take() ?? [:] }
        for link in live.values { link.end(nil) }
        for store in stores { store.close() }
    }
}

/// One database of the daemon: its connections and its near cache.
///
/// Thread-safe: all its mutable state is thread-safe.
final class DatabaseStore: LinkEvents, Sendable {
    /// The name of the server's default database.
    static let standardName = "0"

    let database: String?
    private let socketPath: String
    private let onEvent: (@Sendable (CacheEvent) -> Void)?
    /// The program's hooks around calls; nil for none.
    let hooks: CallHooks?
    var name: String { database ?? Self.standardName }
    let links: [Link]
    let near: NearCache?
    let ownConnections: ConnectionPool
    /// Wakes callers that wait for other processes' fetches.
    let signals = FetchSignals()
    /// The connection for FETCH, on which no request blocks; created by the first fetch. It owns the leases, which end
    /// when it is closed.
    let fetchLink: Link
    /// The calls that run code of the program, or pause between their requests.
    let calls = RunningCalls()
    /// The queues of this process's tasks for locks, by the lock's key.
    let lockQueues = NamedSemaphores()
    /// The permit to repeat a transaction after a conflict: one transaction at a time.
    let retries = AsyncSemaphore(1)
    /// The longest time in milliseconds that a transaction waits for ``retries``. The transaction then continues,
    /// because the holder of the permit may be waiting for it.
    let turnMilliseconds: Int
    private let turn = Atomic(0)
    /// Whether the server is known to support MULTI.
    private let knowsTransactions = Atomic(false)

    init(_ socketPath: String, _ database: String?, _ options: ClientOptions, _ gate: ConnectionGate) {
        self.database = database
        self.socketPath = socketPath
        onEvent = options.onEvent
        hooks = CallHooks(options.onMeasurement, options.onCall)
        turnMilliseconds = options.timeoutMilliseconds == 0 ? 5_000 : options.timeoutMilliseconds
        near = options.nearCache.map { NearCache($0) }
        var settings = LinkSettings(socketPath, options, database: database, gate: gate)
        ownConnections = ConnectionPool(socketPath, database, options, gate)
        var forFetches = settings
        forFetches.setup.tracking = .optIn
        fetchLink = Link(forFetches)
        links = (0..<options.connections).map { index in
            settings.staysConnected = options.nearCache != nil && index == 0
            settings.setup.tracking = settings.staysConnected ? .read : .none
            return Link(settings)
        }
        if near != nil || options.onEvent != nil { links[0].attach(self) }
        fetchLink.attach(signals)
    }

    /// Whether no call is running, no request waits for its reply, and no separate connection is in use.
    var isIdle: Bool { calls.isEmpty && links.allSatisfy(\.isIdle) && fetchLink.isIdle && ownConnections.isIdle }

    func close() {
        for link in links { link.close() }
        fetchLink.close()
        ownConnections.close()
        lockQueues.close()
        // Empty the near cache now, before the loop notices the end of the connection, because later calls must throw
        // instead of returning values from the near cache.
        near?.setLive(false)
    }

    // MARK: Requests

    /// Returns the link for the next request. With a near cache, all reads use the link with CLIENT TRACKING, because
    /// the near cache may keep their results.
    private func link(isRead: Bool) -> Link {
        if links.count == 1 || (isRead && near != nil) { return links[0] }
        let turn = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        return links[Int(UInt(bitPattern: turn) % UInt(links.count))]
    }

    /// Performs a request. An error of the server is thrown.
    /// - Parameter link: nil for the next one.
    func perform<Result>(_ request: Request<Result>, on link: Link? = nil) async throws(LarderClientError) -> Result {
        var bytes: [UInt8] = []
        RequestEncoder.encode(request.words, into: &bytes)
        let exchange = Exchange(bytes: bytes, replyCount: 1, name: request.words[0], isRead: request.isRead)
        do throws(LarderClientError) {
            defer { near?.drop(request) }
            let replies = try await (link ?? self.link(isRead: request.isRead)).perform(exchange)
            let result = try request.result(of: replies[0])
            request.noteWrites(replies[0], in: self, name)
            return result
        } catch {
            throw error.about(name)
        }
    }

    /// Performs several requests in one round trip. Returns a result or an error for each of them.
    func performAll<Result>(_ requests: [Request<Result>], on link: Link? = nil) async throws(LarderClientError)
        -> [Swift.Result<Result, LarderClientError>]
    {
        guard !requests.isEmpty else { return [] }
        let isRead = requests.allSatisfy(\.isRead)
        do throws(LarderClientError) {
            defer { for request in requests { near?.drop(request) } }
            for request in requests { try CommandRules.checkLengths(request.words) }
            let exchange = Exchange(requests.map(\.words), isRead: isRead)
            let replies = try await (link ?? self.link(isRead: isRead)).perform(exchange)
            return Request.results(of: requests, replies, name)
        } catch {
            throw error.about(name)
        }
    }

    /// Sends two requests that only read, in one round trip.
    func perform<First, Second>(_ first: Request<First>, _ second: Request<Second>)
        async throws(LarderClientError) -> (First, Second)
    {
        let (first, others) = try await perform(first, [second])
        return (first, others[0])
    }

    /// Sends a request and several others that only read, in one round trip.
    func perform<First, Other>(_ first: Request<First>, _ others: [Request<Other>])
        async throws(LarderClientError) -> (First, [Other])
    {
        let exchange = Exchange([first.words] + others.map(\.words), isRead: true)
        do throws(LarderClientError) {
            let replies = try await links[0].perform(exchange)
            let result = try first.result(of: replies[0])
            var results: [Other] = []
            results.reserveCapacity(others.count)
            for (index, other) in others.enumerated() { results.append(try other.result(of: replies[index + 1])) }
            return (result, results)
        } catch {
            throw error.about(name)
        }
    }

    /// Returns no replies and sends nothing, for a call that has nothing to request.
    /// - Throws: `closed` if the client was closed.
    @discardableResult
    func nothing(_ operation: String) throws(LarderClientError) -> [RESPValue] { try links[0].nothing(operation) }

    /// Returns the kind of the server. Waits for a connection if there was none yet, and costs nothing afterwards.
    func server() async throws(LarderClientError) -> ServerKind {
        if let server = links[0].knownServer { return server }
        calls.begin()
        defer { calls.end() }
        try await links[0].connected()
        return links[0].knownServer ?? ServerKind()
    }

    /// Sends several commands unchanged, and returns their replies. Errors of the server are returned as values.
    func commands(_ commands: [[[UInt8]]], rules: CommandRules) async throws(LarderClientError) -> [RESPValue] {
        guard !commands.isEmpty else { return try nothing("pipeline") }
        try rules.check(commands)
        return try await link(isRead: false).perform(Exchange(commands))
    }

    // MARK: Transactions

    /// Executes commands in one step.
    func transaction(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        do throws(LarderClientError) {
            return try await checkedTransaction(commands)
        } catch {
            throw error.about(name)
        }
    }

    private func checkedTransaction(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        guard !commands.isEmpty else { return try nothing("transaction") }
        try CommandRules.transaction.check(commands)
        let link = link(isRead: false)
        if !knowsTransactions.load(ordering: .relaxed) {
            // Check first: a server without MULTI would execute the following commands one at a time.
            _ = try await link.perform(Exchange([wordList("MULTI"), wordList("DISCARD")]))[0].checked("MULTI")
            knowsTransactions.store(true, ordering: .relaxed)
        }
        guard let results = try await execute(commands, on: link, connection: nil) else {
            // Nothing was watched, so null is not a valid reply.
            throw .unexpectedReply(to: "EXEC", "an array")
        }
        return results
    }

    /// Executes commands as a transaction: MULTI, the commands, EXEC.
    /// - Returns: nil if a watched key was changed.
    func execute(_ commands: [[[UInt8]]], on link: Link, connection: Int?) async throws(LarderClientError)
        -> [RESPValue]?
    {
        let exchange = Exchange(
            [wordList("MULTI")] + commands + [wordList("EXEC")], name: wordList("EXEC")[0],
            connectionNumber: connection)
        return try BatchPlan.results(of: commands, try await link.perform(exchange))
    }

    // MARK: Events

    /// Reports an event of the database to the program.
    func report(_ level: CacheEvent.Level, _ message: String, key: [UInt8]? = nil, error: (any Error)? = nil) {
        guard let onEvent else { return }
        var metadata = ["socket": socketPath, "database": name]
        metadata["key"] = key.map { printableKey($0) }
        onEvent(CacheEvent(level, message, metadata: metadata, error: error))
    }

    // MARK: The near cache

    /// Makes the near cache drop the keys of a transaction's changes, whether or not it has succeeded.
    func drop(_ changes: [BatchChange]) {
        if let near { for change in changes { near.drop(change.key) } }
    }

    func linkIsReady(_ link: Link) {
        // Only RESP3 has push messages; without them the near cache must stay empty.
        if link.knownServer?.speaksRESP3 == true { near?.setLive(true) }
        report(.info, "connected to the daemon at \(socketPath)")
    }

    func linkWasLost(_ link: Link) {
        near?.setLive(false)
        report(.warning, "the connection to the daemon at \(socketPath) was lost")
    }

    func link(_ link: Link, pushed message: [RESPValue]) {
        guard message.count == 2, message[0].string == "invalidate" else { return }
        guard let keys = message[1].elements else {
            near?.invalidate(nil)
            return
        }
        near?.invalidate(keys.compactMap(\.bytes))
    }

    // MARK: Scripts

    /// Runs a script by its digest. The first call in a process requests the digest from the server. If the server does
    /// not have the script, runs it by its text.
    /// - Parameter isOrdered: whether the script is sent after all earlier ordered requests.
    /// - Throws: `server` with the script's error, and errors of the connection.
    func run(_ call: ScriptCall, isOrdered: Bool = false) async throws(LarderClientError) -> RESPValue {
        let link = isOrdered ? links[0] : nil
        let known = call.digest
        let digest = if let known { known } else { try await perform(call.load, on: link) }
        do throws(LarderClientError) {
            return try await perform(call.run(digest), on: link)
        } catch {
            guard ScriptCall.isUnknown(error) else { throw error }
            return try await perform(call.runText, on: link)
        }
    }
}
