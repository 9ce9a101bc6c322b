import LarderEngine

/// A database of models. A model is returned until it expires by its policy, and never afterwards.
///
/// ```swift
/// let cache = try Cache(named: "userdb", policy: .low)            // fresh for 24 hours
/// try cache.set(Reader(…), forKey: "reader")
/// let reader = try cache.value(Reader.self, forKey: "reader")     // nil after 24 hours
/// ```
///
/// - A *larder* is a directory with many databases. Only one process at a time can have it open. Opening a name twice
///   in that process returns two handles on the same database. Other processes get an error that names the process with
///   the open larder. To share a larder between processes, use the daemon `larderd` and LarderClient.
/// - The policy is stored in the database. Entries without a policy of their own follow it, even if it changes later.
/// - When a write returns, it has the promised durability. See ``CacheOptions/durability``.
/// - The reading calls are in ``CacheReading``, which ``CacheSnapshot`` shares.
///
/// Thread-safe. In asynchronous code Swift picks the form of a call that does not block: `try await cache.value(…)`.
public final class Cache: CacheReading {
    /// The name of the default database, which clients of `larderd` start in too.
    public static let standardName = "0"

    /// The object through which the reading calls access the database.
    public let source: CacheSource
    /// The larder's directory, absolute and without symbolic links.
    public let directory: String
    var durability: Durability? { source.durability }

    /// Opens a database. The first write creates its files. An existing database keeps its policy; a new database has
    /// ``UpdatePolicy/lowest``, 7 days.
    /// - Parameters:
    ///   - name: 1 to 64 characters of a-z, 0-9, `.`, `_` and `-`, beginning with a letter, a digit or `_`. A name that
    ///     is a number must be from 0 to 15. Names that end with `.outbox` are reserved for Larder.
    ///   - directory: the larder's directory, created if it is missing. The default is ``defaultDirectory``.
    ///   - options: how this cache reads and writes, and how the larder is opened if it is not open in this process.
    /// - Throws: ``LarderError/Code/larderHeld`` if another process has the larder open; ``LarderError/Code/damaged``
    ///   if the database's files are damaged (this call leaves them unchanged; use `salvage(named:directory:)` or
    ///   `setAsideDamaged(named:directory:)`); ``LarderError/Code/newerFormat`` if a newer version of Larder wrote
    ///   them; ``LarderError/Code/invalidArgument`` for an invalid name or option, or if this process has already
    ///   opened the larder with other options of the larder.
    public convenience init(
        named name: String = Cache.standardName, directory: String? = nil, options: CacheOptions = CacheOptions()
    ) throws(LarderError) {
        self.init(try Cache.open(name, nil, directory, options))
    }

    /// Opens a database like ``init(named:directory:options:)-(String,_,_)``, without blocking the calling thread.
    public convenience init(
        named name: String = Cache.standardName, directory: String? = nil, options: CacheOptions = CacheOptions()
    ) async throws(LarderError) {
        self.init(
            try await BlockingWork.run { () throws(LarderError) in try Cache.open(name, nil, directory, options) })
    }

    /// Opens a database, creates it if it is missing, and sets its policy. The new policy also applies to existing
    /// entries, but does not revive expired ones.
    ///
    /// - Parameters:
    ///   - name: as for `init(named:directory:options:)`, which also lists the errors.
    ///   - policy: how long entries without a policy of their own stay fresh. ``LarderError/Code/invalidArgument`` is
    ///     thrown for an invalid interval.
    ///   - grace: how long entries are kept after their deadline, for calls that fetch: 0 to 9,000,000,000 seconds,
    ///     rounded to milliseconds. An entry may have a grace of its own instead. Nil keeps the database's grace; a new
    ///     database has none.
    ///   - percent: the jitter, 0 to 100. When an entry that follows the policy is stored, its lifetime is shortened at
    ///     random by up to this percentage. Nil keeps the database's jitter; a new database has 0.
    ///   - indexes: the indexes that queries need; they are created unless they exist: see `declareIndexes(_:)`.
    ///   - schema: the rules of the models, one ``Schema`` for each type that has some. They apply to this cache.
    ///     ``LarderError/Code/invalidArgument`` is thrown for rules that contradict each other.
    ///   - directory: the larder's directory, created if it is missing. The default is ``defaultDirectory``.
    ///   - options: how this cache reads and writes, and how the larder is opened if it is not open in this process.
    public convenience init(
        named name: String = Cache.standardName, policy: UpdatePolicy, grace: Duration? = nil,
        jitter percent: Int? = nil, indexes: [Index] = [], schema: any ModelSchema..., directory: String? = nil,
        options: CacheOptions = CacheOptions()
    ) throws(LarderError) {
        let change = try PolicyChange(policy, grace, percent, "open", name)
        self.init(try Cache.open(name, change, directory, options, indexes, schema))
    }

    /// Opens a database like `init(named:policy:grace:jitter:indexes:schema:directory:options:)`, without blocking the calling
    /// thread.
    public convenience init(
        named name: String = Cache.standardName, policy: UpdatePolicy, grace: Duration? = nil,
        jitter percent: Int? = nil, indexes: [Index] = [], schema: any ModelSchema..., directory: String? = nil,
        options: CacheOptions = CacheOptions()
    ) async throws(LarderError) {
        let change = try PolicyChange(policy, grace, percent, "open", name)
        self.init(
            try await BlockingWork.run { () throws(LarderError) in
                try Cache.open(name, change, directory, options, indexes, schema)
            })
    }

    /// Like the initializer with `policy:`, with an interval in seconds, rounded to milliseconds.
    /// - Throws: ``LarderError/Code/invalidArgument`` unless `seconds` is at least 0.001 and at most 9,000,000,000.
    public convenience init(
        named name: String = Cache.standardName, interval seconds: Double, directory: String? = nil,
        options: CacheOptions = CacheOptions()
    ) throws(LarderError) {
        try self.init(named: name, policy: .seconds(seconds), directory: directory, options: options)
    }

    /// Opens a database like ``init(named:interval:directory:options:)-(String,_,_,_)``, without blocking the calling
    /// thread.
    public convenience init(
        named name: String = Cache.standardName, interval seconds: Double, directory: String? = nil,
        options: CacheOptions = CacheOptions()
    ) async throws(LarderError) {
        try await self.init(named: name, policy: .seconds(seconds), directory: directory, options: options)
    }

    init(_ opened: Opened) { (source, directory) = opened }

    /// An open database, from which a cache is created.
    typealias Opened = (source: CacheSource, directory: String)

    static func open(
        _ name: String, _ policy: PolicyChange?, _ directory: String?, _ options: CacheOptions,
        _ indexes: [Index] = [], _ schemas: [any ModelSchema] = [], onShutdown: @escaping @Sendable () -> Void = {}
    ) throws(LarderError) -> Opened {
        try DatabaseName.checkIsNotCompanion(name, operation: "open")
        if let problem = ModelRules.problem(of: schemas, options.codec) {
            throw LarderError(.invalidArgument, problem, operation: "open", database: name)
        }
        var engineOptions = try options.engineOptions()
        engineOptions.onShutdown = onShutdown
        let engine = try Engine.open(
            directory ?? Cache.defaultDirectory, options: engineOptions, time: options.timeSource)
        try options.check(engine)
        let database: Database
        if let policy {
            database = try engine.openDatabase(name, policy: policy.policy, grace: policy.grace, jitter: policy.jitter)
        } else {
            database = try engine.database(name)
            // Prepare now, so that damage is reported here and not by the first read.
            try database.prepare(forWriting: false)
        }
        let source = CacheSource(
            engine, database, codec: options.codec.following(schemas), onDecodingFailure: options.onDecodingFailure,
            keepsDecoded: options.decodedModels, durability: options.durability,
            hooks: CallHooks(options.onMeasurement, options.onCall))
        try source.declare(indexes)
        return (source, engine.directory)
    }

    /// The default larder: `<program>/larder` in the user's cache directory (`$XDG_CACHE_HOME`, or `~/.cache`), so that
    /// two programs do not share a larder by accident.
    public static var defaultDirectory: String { DefaultPaths.programLarder(program: programName) }

    private static var programName: String {
        let path = CommandLine.arguments.first ?? ""
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        return ["", ".", ".."].contains(name) ? "program" : name
    }

    /// Changes the database's policy. The new policy also applies to existing entries without a policy of their own,
    /// but does not revive expired ones.
    /// - Parameters:
    ///   - policy: how long entries without a policy of their own stay fresh.
    ///   - grace: as for `init(named:policy:grace:jitter:indexes:schema:directory:options:)`; also applies to existing
    ///     entries. Nil keeps the current grace.
    ///   - percent: the jitter, as for the initializer; applies to entries stored from now on. Nil keeps the current
    ///     jitter.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an invalid policy, grace or jitter.
    public func setPolicy(_ policy: UpdatePolicy, grace: Duration? = nil, jitter percent: Int? = nil)
        throws(LarderError)
    {
        let change = try PolicyChange(policy, grace, percent, "policy", name)
        try source.whileOpen("policy") { (_) throws(LarderError) in
            try source.database.setPolicy(change.policy, grace: change.grace, jitter: change.jitter)
        }
    }

    /// Declares indexes, as the initializer with `indexes:` does: creates those that do not exist yet, and returns when
    /// this is on the disk. They are built in the background. The next models that this cache stores are compared with
    /// the declared fields: see ``Index``.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an invalid index, for more than 32 of them, and if the models
    ///   are not stored as JSON, or there would be more than 32 with those of the database. None was created then.
    public func declareIndexes(_ indexes: [Index]) throws(LarderError) { try source.declare(indexes) }

    /// Drops the indexes of the database except these, for example those that earlier versions of a program declared.
    /// The version of a computed index is not compared.
    /// - Returns: the number of dropped indexes.
    @discardableResult
    public func dropIndexes(except indexes: [Index]) throws(LarderError) -> Int { try source.drop(except: indexes) }

    /// Returns a view of the current state of the database, without later writes. Time still passes: a read returns no
    /// entry whose deadline has passed, whose tag was purged, or that has expired because the policy was changed. The
    /// view keeps old files on the disk. If the disk limit requires the space of these files, the view ends, and its
    /// reads throw ``LarderError/Code/invalidated``.
    public func snapshot() throws(LarderError) -> CacheSnapshot {
        let lease = try source.hold("snapshot")
        defer { withExtendedLifetime(lease) {} }
        return CacheSnapshot(
            source: CacheSource(
                lease.engine, source.database, snapshot: try source.database.snapshot(), codec: source.codec,
                onDecodingFailure: source.onDecodingFailure))
    }

    /// Reads several values consistently: `body` sees the database as it is at the start, regardless of concurrent
    /// writes. See `snapshot()`.
    /// - Throws: ``LarderError``, and errors of `body`.
    public func withSnapshot<Result>(_ body: (CacheSnapshot) throws -> Result) throws -> Result {
        let snapshot = try snapshot()
        defer { snapshot.close() }
        return try body(snapshot)
    }

    /// Closes this handle: later calls throw ``LarderError/Code/closed``, also calls that wait for a
    /// fetch. Other running calls complete. The larder is synced,
    /// closed and available to other processes once its last cache, snapshot and enumeration is closed or released.
    /// Idempotent.
    public func close() { source.close() }
}
