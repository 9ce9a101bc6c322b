import LarderPlatform
import LarderTestSupport
import Synchronization

@testable import LarderEngine

/// A larder for one test, with its own directory, a manual clock, and no background threads unless requested.
final class TestLarder {
    /// The directory that contains the larder's directory and copies of it.
    let parent: String
    /// The temporary directory, which is removed with the last reference.
    private let owned: TemporaryDirectory?
    let time: ManualTimeSource
    let events = Recorder<CacheEvent>()
    private(set) var options: EngineOptions
    private var opened: Engine?

    /// - Parameters:
    ///   - parent: the directory for the larder, which the caller removes; nil for a temporary directory. Needed in
    ///     processes that terminate without cleaning up.
    ///   - inMemory: true for tests that sync often and need no disk, if a file system in memory exists.
    init(
        below parent: String? = nil, inMemory: Bool = true,
        _ configure: (inout EngineOptions) -> Void = { _ in }
    ) throws {
        let owned = try parent == nil ? TemporaryDirectory(inMemory: inMemory) : nil
        self.owned = owned
        self.parent = parent ?? owned?.path ?? ""
        time = ManualTimeSource()
        var options = EngineOptions()
        options.backgroundMaintenance = false
        options.durability = .os
        options.onEvent = { [events] in events.add($0) }
        // LARDER_TEST_MEMORY=0 runs tests without entries in memory; a small number of bytes causes constant eviction.
        if let bytes = TestSetting.memoryBytes.number() { options.memoryBytes = bytes }
        configure(&options)
        self.options = options
    }

    deinit { opened?.shutdown() }

    var path: String { parent + "/larder" }

    /// Returns the engine. Opens it at the first use.
    func engine() throws -> Engine {
        if let opened { return opened }
        let engine = try Engine.open(path, options: options, time: time)
        opened = engine
        return engine
    }

    /// Shuts the larder down; the next use opens it again.
    func close() {
        opened?.shutdown()
        opened = nil
    }

    /// Shuts the larder down and changes how it is opened next.
    func close(_ configure: (inout EngineOptions) -> Void) {
        close()
        configure(&options)
    }

    /// Returns a database. Opens or creates it if necessary.
    func database(_ name: String = "books", policy: UpdatePolicy? = nil) throws -> Database {
        try engine().openDatabase(name, policy: policy)
    }

    /// Writes SEQUENCES as earlier versions did: without the names of databases.
    func forgetNamesOfDatabases() throws {
        let file = try SequencesFile.read(in: path)
        let fields = [("commit-units", file?.commitUnits ?? 0), ("epochs", file?.epochs ?? 0)]
        let text = ChecksummedText.text("larder-sequences", version: 2, fields)
        try Files.write(path + "/" + SequencesFile.name, Array(text.utf8))
    }

    /// Runs rounds of maintenance until there is nothing left to do.
    func maintain() throws {
        while try engine().maintain() {}
    }
}

extension Recorder<CacheEvent> {
    /// Returns whether the engine has reported a message that contains this text.
    func contains(_ text: String) -> Bool { all.contains { $0.message.contains(text) } }
}

extension Engine {
    /// Runs a change of the same key in two databases.
    func change(
        _ key: String, in source: Database, and target: Database, _ access: Access = .mayBlock,
        _ body: (inout Update, inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        let parts = [source, target].map {
            TransactionPart(database: $0, keys: [Key(key)], loadedCount: 1, watches: [])
        }
        let end = try transact(parts[0], and: parts[1], now: source.now(), access, body)
        guard case .applied(let ticket) = end else { return nil }
        return ticket
    }
}

extension Database {
    @discardableResult
    func put(
        _ key: String, _ value: String, rule: DeadlineRule = .governed, durability: Durability? = nil
    ) throws(LarderError) -> Int {
        try commit([Key(key)], loading: .none, durability: durability) { update in
            Array(value.utf8).withUnsafeBytes { update.put(0, payload: $0, rule: rule) }
            return value.utf8.count
        }
    }

    /// Stores a value like ``put(_:_:rule:durability:)``, but first writes it to a file, as for long values, whatever
    /// its length.
    /// - Returns: the previous value, if `loading` is true.
    @discardableResult
    func putAhead(
        _ key: String, _ value: String, rule: DeadlineRule = .governed, durability: Durability? = nil,
        loading: Bool = false
    ) throws(LarderError) -> String? {
        let bytes = Array(value.utf8)
        let long = try bytes.withUnsafeBytes { payload in
            Result { () throws(LarderError) in
                try LargeValue(staging: payload, Key(key), in: self, rule: rule, durability: durability)
            }
        }.get()
        return try commit([Key(key)], loading: loading ? .records : .none, durability: durability) { update in
            defer { bytes.withUnsafeBytes { update.put(0, payload: $0, long: long, rule: rule) } }
            return loading ? update.current(0)?.text : nil
        }
    }

    /// Stores a value like ``put(_:_:rule:durability:)``, but does not wait for the commit.
    func putLater(_ key: String, _ value: String) throws(LarderError) -> CommitTicket {
        try update([Key(key)], loading: false, now: now()) { update in
            Array(value.utf8).withUnsafeBytes { update.put(0, payload: $0) }
        }.1
    }

    func value(_ key: String) throws(LarderError) -> String? { try get(Key(key)).map(\.text) }

    /// Returns the fresh entry of a key, and the commits that a reply would have to wait for.
    func read(_ key: Key, now: Int64) throws(LarderError) -> (record: Record?, ticket: CommitTicket) {
        var (found, ticket): (Record?, CommitTicket) = (nil, .none)
        _ = try key.withBytes { (bytes) throws(LarderError) in
            try read(bytes, now: now, .mayBlock, ticket: &ticket) { record, _ in
                found = Record(record)
            }
        }
        return (found, ticket)
    }

    /// Removes a key.
    /// - Returns: whether a fresh entry was there.
    @discardableResult
    func remove(_ key: String) throws(LarderError) -> Bool {
        try commit([Key(key)], loading: .records) { update in
            let found = update.current(0) != nil
            update.remove(0)
            return found
        }
    }

    /// Returns all entries that a cursor finds.
    func contents(_ options: EnumerationOptions = EnumerationOptions()) throws(LarderError) -> [String: String] {
        try cursor(options)?.contents() ?? [:]
    }

    /// Returns the store after writing the entries in memory to it.
    func flushedStore() throws(LarderError) -> EpochStore? {
        if exists { try checkpointer.flush(self) }
        return durableState.store
    }

    /// Writes the entries in memory to LevelDB, and returns all of LevelDB's keys. Leaves out the keys that record
    /// which part of the journal is needed.
    func rawKeys() throws(LarderError) -> [[UInt8]] {
        guard let store = try flushedStore() else { return [] }
        return try store.rawKeys().filter { $0 != EpochMetadata.journalKey }
    }
}

extension Snapshot {
    func value(_ key: String) throws(LarderError) -> String? { try get(Key(key)).map(\.text) }

    func contents(_ options: EnumerationOptions = EnumerationOptions()) throws(LarderError) -> [String: String] {
        try cursor(options)?.contents() ?? [:]
    }
}

extension EntryCursor {
    func contents() throws(LarderError) -> [String: String] {
        var result: [String: String] = [:]
        while try next() { result[String(decoding: try key().bytes, as: UTF8.self)] = try record().text }
        return result
    }

    /// Returns the cursor's remaining keys, in the order of the cursor.
    func keys() throws(LarderError) -> [String] {
        var result: [String] = []
        while try next() { result.append(String(decoding: try key().bytes, as: UTF8.self)) }
        return result
    }
}

extension Record {
    var text: String { String(decoding: payload, as: UTF8.self) }
}

/// Returns the code of the ``LarderError`` that `body` throws; nil if it throws none.
func errorCode(_ body: () throws -> Void) -> LarderError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? LarderError)?.code
    }
}

extension Database {
    /// Runs a change that may read from disk. Returns its result and the ticket with which to wait for its commit.
    func update<Result>(
        _ keys: [Key], loading: Bool, now: Int64, durability: Durability? = nil, fillCache: Bool = true,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> (Result, CommitTicket) {
        var result: Result?
        let ticket = try perform(
            keys, loading ? .records : .none, .mayBlock, now: now, durability: durability, fillCache: fillCache
        ) { (update) throws(LarderError) in result = try body(&update) }
        guard let result, let ticket else { preconditionFailure("the body of an update was not called") }
        return (result, ticket)
    }
}
