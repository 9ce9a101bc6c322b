import LarderPlatform
import LarderWire

@_exported import enum LarderRESP.RESPValue

/// A client of a running `larderd` whose calls block, for command-line tools and your own threads. Asynchronous code
/// uses ``LarderClient``.
///
/// ```swift
/// let client = try BlockingLarderClient(database: "userdb")
/// try client.set(reader, forKey: "reader", policy: .seconds(90))
/// let reader = try client.value(Reader.self, forKey: "reader")      // nil when absent or not fresh any more
/// ```
///
/// Every call blocks until the daemon has answered, so do not call it on Swift's cooperative pool. The client has one
/// connection, made when the client is created. After a loss, the client reconnects, selects the database again, and
/// sends the request again. The call throws instead if the daemon may have received a part of the request, or if the
/// lost connection had state that is lost too, such as an open snapshot.
///
/// The calls have the names, parameters and errors of ``RemoteCache``, whose pages describe them in full. They differ
/// in three ways: each call has its own type of model, there is no near cache, and there are no hooks such as `onEvent`.
///
/// Thread-safe: calls from several threads are executed one at a time.
public final class BlockingLarderClient: Sendable {
    let session: BlockingSession
    let codec: ModelCodec

    /// Connects to the daemon.
    /// - Parameters:
    ///   - socketPath: the daemon's socket; nil for ``LarderClient/defaultSocketPath``.
    ///   - database: the database to use; nil for the server's default, `0`.
    ///   - password: the daemon's password (`--password-file`); nil if it has none.
    ///   - timeoutMilliseconds: how long a call may wait without progress in either direction, 1 to
    ///     ``ClientOptions/timeoutMillisecondsMax``; 0 for no limit. A long reply is not cut off while it keeps
    ///     arriving.
    ///   - codec: encodes the models. The default is JSON. Reads use the codec that is stored with the entry. To read
    ///     entries of a custom codec, pass that codec again.
    ///   - schema: the rules of the models, one ``Schema`` for each type that has some.
    ///   - trustedUsers: additional users whose daemons are trusted: see ``ClientOptions/trustedUsers``.
    ///   - startPatienceMilliseconds: how long to wait for a daemon that does not run yet. The default is 0.
    /// - Throws: `noDaemon` if nothing answers at the socket, or not in time; `untrusted` if the process belongs to
    ///   another user; `invalidArgument` if the path is empty or too long, a time is out of range, or a schema is
    ///   impossible; `server` if the daemon refuses the connection or the database's name; `io` if the system refuses
    ///   (no permission to use the socket).
    public init(
        socketPath: String? = nil, database: String? = nil, password: String? = nil, timeoutMilliseconds: Int = 5_000,
        codec: ModelCodec = .standard, schema: any ModelSchema..., trustedUsers: Set<UInt32> = [],
        startPatienceMilliseconds: Int = 0
    ) throws(LarderClientError) {
        let path = try ClientOptions.checkedPath(socketPath, timeoutMilliseconds)
        if let problem = ModelRules.problem(of: schema, codec) {
            throw LarderClientError(.invalidArgument, problem, operation: "connect", database: database)
        }
        self.codec = codec.following(schema).ofCache
        let trust = PeerTrust(trustedUsers: trustedUsers)
        var options = ClientOptions()
        options.startPatienceMilliseconds = startPatienceMilliseconds
        try options.check(path)
        let until = MonotonicClock.milliseconds() + Int64(startPatienceMilliseconds)
        session = try Self.retrying(until: until) { () throws(LarderClientError) in
            try BlockingSession(
                socketPath: path, password: password, database: database, timeoutMilliseconds: timeoutMilliseconds,
                trust: trust)
        }
    }

    /// Calls `connect` until there is a daemon.
    private static func retrying<Result>(
        until: Int64, _ connect: () throws(LarderClientError) -> Result
    ) throws(LarderClientError) -> Result {
        while true {
            do throws(LarderClientError) { return try connect() } catch {
                let left = until - MonotonicClock.milliseconds()
                guard error.code == .noDaemon, left > 0 else { throw error }
                WorkThread.sleep(nanoseconds: UInt64(min(50, left)) * 1_000_000)
            }
        }
    }

    /// The name of the selected database; `0` is the server's default.
    public var name: String { session.databaseName }

    /// The socket that this client is connected to.
    public var socketPath: String { session.socketPath }

    /// Closes the connection; later calls throw `closed`. Waits for another thread's running call. Idempotent. A client
    /// closes itself when its last reference is released.
    public func close() { session.close() }

    // MARK: Any command

    /// Sends one command and returns the reply unchanged. An error of the server is returned as a value,
    /// ``RESPValue/error(_:)``, and is not thrown.
    ///
    /// Replies are in RESP3 if the server supports it. Pushed messages are dropped.
    /// - Parameter words: the command's name and its arguments.
    @discardableResult
    public func command(_ words: [String]) throws(LarderClientError) -> RESPValue {
        try command(bytes: words.map { Array($0.utf8) })
    }

    /// Like ``command(_:)-([String])``.
    @discardableResult
    public func command(_ words: String...) throws(LarderClientError) -> RESPValue { try command(words) }

    /// Like ``command(_:)-([String])``, for keys and values of any bytes.
    @discardableResult
    public func command(bytes words: [[UInt8]]) throws(LarderClientError) -> RESPValue {
        try CommandRules.blocking.check([words])
        return try session.perform([words], operation: printableKey(words[0]))[0]
    }

    /// Sends several commands at once and returns their replies, in the same order. Not atomic: commands of other
    /// clients may run in between. If a command fails, its reply is the error, as a value.
    ///
    /// Costs one round trip for all of them. `SELECT` must be the last command, because commands after a refused
    /// `SELECT` would run in the previous database.
    public func pipeline(_ commands: [[[UInt8]]]) throws(LarderClientError) -> [RESPValue] {
        try CommandRules.own.check(commands)
        return try session.perform(commands, operation: "pipeline")
    }

    /// Checks that the daemon answers.
    public func ping() throws(LarderClientError) { try perform(.ping) }

    // MARK: Scripts

    /// Runs a script in the selected database, and returns its reply unchanged; see
    /// ``LarderClient/LarderClient/script(_:keys:arguments:readOnly:returning:)``.
    @discardableResult
    public func script(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false
    ) throws(LarderClientError) -> RESPValue {
        let call = try ScriptCall(script, keys: keys, arguments: arguments, readOnly: readOnly)
        let known = call.digest
        let digest = if let known { known } else { try perform(call.load) }
        do throws(LarderClientError) {
            return try perform(call.run(digest))
        } catch {
            guard ScriptCall.isUnknown(error) else { throw error }
            return try perform(call.runText)
        }
    }

    /// Runs a script in the selected database, as
    /// ``LarderClient/LarderClient/script(_:keys:arguments:readOnly:returning:)``, and blocks until it has ended.
    public func script<Result: ScriptResult>(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false,
        returning type: Result.Type = Result.self
    ) throws(LarderClientError) -> Result {
        try named { () throws(LarderClientError) in
            try ScriptCall.result(try self.script(script, keys: keys, arguments: arguments, readOnly: readOnly))
        }
    }

    // MARK: Databases

    /// Selects a database, now and after each reconnect. The daemon creates it when it stores the first entry.
    public func select(_ database: String) throws(LarderClientError) { try session.select(database) }

    /// Returns the databases of the larder, ordered by name.
    public func databases() throws(LarderClientError) -> [DatabaseInfo] { try perform(.databases) }

    /// Returns the daemon's `INFO`, as ``LarderClient/LarderClient/serverInfo(section:)``.
    public func serverInfo(section: String? = nil) throws(LarderClientError) -> String {
        try perform(.serverInfo(section))
    }

    /// Returns the policy of this client's database.
    public func policy() throws(LarderClientError) -> UpdatePolicy { try perform(.updatePolicy) }

    /// Changes the policy of this client's database, as ``RemoteCache/setPolicy(_:grace:jitter:)``.
    public func setPolicy(_ policy: UpdatePolicy, grace: Duration? = nil, jitter percent: Int? = nil)
        throws(LarderClientError)
    {
        try perform(try .setPolicy(policy, grace: grace, jitter: percent, name))
    }

    /// Empties this client's database, at a cost that does not depend on its size. The policy stays.
    @discardableResult
    public func removeAll() throws(LarderClientError) -> PurgeReport { try perform(.purge()) }

    /// Removes all entries with a tag, or makes them stale, as `RemoteCache.removeAll(tagged:soft:)`. Needs larderd.
    public func removeAll(tagged tag: String, soft: Bool = false) throws(LarderClientError) {
        try removeAll(tagged: [tag], soft: soft)
    }

    /// Like the call above, for all entries with at least one of several tags, in one step. Without tags, nothing is
    /// sent.
    public func removeAll(tagged tags: some Sequence<String>, soft: Bool = false) throws(LarderClientError) {
        try removeAll(taggedBytes: tags.map { Array($0.utf8) }, soft: soft)
    }

    /// Removes expired entries of this client's database that the daemon has not removed yet.
    @discardableResult
    public func removeExpired() throws(LarderClientError) -> PurgeReport { try perform(.purgeExpired) }

    /// Removes the entries of this client's database whose keys begin with `prefix`.
    @discardableResult
    public func remove(prefix: some CacheKey) throws(LarderClientError) -> PurgeReport {
        try perform(.purge(wordList("PREFIX") + [prefix.keyBytes]))
    }
}
