import LarderLevelDB
import LarderPlatform

/// The facts of a larder that are not entries of its users: which tags were purged, and the data of the embedding
/// program (the daemon's functions and origins).
///
/// Each fact is an entry of an internal database, `LEDGER`, and never expires. So the journal, checkpoints, salvage,
/// checks and backups treat a fact like every other entry. No fact has a file of its own, which could be torn or be
/// lost undetected.
///
/// | key | value; integers have 8 bytes, big-endian |
/// |---|---|
/// | `tags/<database>` | its ``TagPurges/floors``: exists since the first purge of a tag |
/// | `tags/<database>/` and a tag's hash | its ``TagPurges/Note`` |
/// | `program/<name>` | data of the program |
/// | `lost` | ``Loss``: facts were lost with damage to the ledger or the journal |
///
/// Thread-safe.
package struct Ledger: Sendable {
    let database: Database

    init(_ database: Database) { self.database = database }

    /// A fact to store, or to remove.
    struct Change {
        let key: [UInt8]
        /// nil removes the fact.
        let value: [UInt8]?
    }

    // MARK: Facts of the program

    private static func programKey(_ name: String) -> [UInt8] { Array("program/\(name)".utf8) }

    /// Returns the value last stored by ``set(_:to:)``; nil if there is none. May block.
    package func value(_ name: String) throws(LarderError) -> [UInt8]? {
        guard database.exists else { return nil }
        return try database.get(Key(Self.programKey(name))).map { Array($0.payload) }
    }

    /// Stores a fact of the program, synced; nil removes it. After an error nothing has changed. May block.
    package func set(_ name: String, to value: [UInt8]?) throws(LarderError) {
        if value == nil, !database.exists { return }
        try commit([Change(key: Self.programKey(name), value: value)])
    }

    /// Takes over a file in which earlier versions kept a fact of the program: stores its content, then removes it. May
    /// block.
    /// - Throws: if the content cannot be stored, or the file cannot be removed; then the file stays unchanged.
    package func adopt(_ name: String, _ content: [UInt8], from path: String) throws(LarderError) {
        try set(name, to: content)
        try database.files.wrapErrors("take over") { () throws(FileError) in try FileSystem.removeFile(path) }
    }

    /// When facts were lost with damage to the ledger or the journal, in milliseconds since 1970; 0 if none were.
    /// Existing facts are still valid: an older version of a fact never comes back.
    package var lossMilliseconds: Int64 { max(0, database.context.larder.factsLost.load(ordering: .relaxed)) }

    // MARK: Storing

    /// Stores facts as one unit, synced.
    func commit(_ changes: [Change]) throws(LarderError) {
        if changes.isEmpty { return }
        while true {
            try prepare()
            let ticket = try database.perform(
                changes.map { Key($0.key) }, .none, .mayBlock, now: database.now(), durability: .always,
                needsFiles: true
            ) { update in
                for (index, change) in changes.enumerated() {
                    if let value = change.value {
                        update.place(index, Self.record(value, now: update.now))
                    } else {
                        update.remove(index)
                    }
                }
            }
            if let ticket { return try database.pipeline.wait(for: ticket) }
        }
    }

    /// Opens the database, and creates it if it is absent. Also records durably that it exists, so that its removal is
    /// detected.
    func prepare() throws(LarderError) {
        if !database.isReady(forWriting: true) {
            try database.prepare(forWriting: true, policy: DatabasePolicy(.never))
        }
        try database.files.wrapErrors("store") { () throws(FileError) in
            try database.context.sequences.note(database.name, exists: true)
        }
    }

    private static func record(_ value: [UInt8], now: Int64) -> Record {
        Record(RecordHeader(storedAt: now, rule: .ownNever), payload: value)
    }

    /// Applies facts to memory, and adds them to a commit unit that also makes a change of another database durable.
    /// Called with all shard locks of both databases held; those of the ledger are taken first.
    /// - Parameter enqueue: queues a commit unit, calls its argument to add the operations to the unit, and returns the
    ///   unit's sequence.
    func apply(
        _ changes: [Change], to store: EpochStore, enqueue: ((JournalBatch, UInt64) -> Void) -> UInt64
    ) -> UInt64 {
        let now = database.unnoticedNow()
        let records = changes.map { (Key($0.key), $0.value.map { Self.record($0, now: now) }) }
        return database.apply(records, to: store, enqueue: enqueue)
    }

    // MARK: Losses

    /// A loss of facts: entries that depend on lost facts must not be served as fresh.
    struct Loss: Equatable {
        static let key = Array("lost".utf8)

        /// A sequence number higher than the numbers of all records that were stored before the loss was detected.
        let sequence: UInt64
        /// When the loss was detected, in milliseconds since 1970.
        let time: Int64

        var bytes: [UInt8] { BigEndian.bytes([sequence, UInt64(bitPattern: time)]) }

        init(sequence: UInt64, time: Int64) { (self.sequence, self.time) = (sequence, time) }

        init?(parsing bytes: [UInt8]) {
            guard let numbers = BigEndian.numbers(2, in: bytes) else { return nil }
            self.init(sequence: numbers[0], time: Int64(bitPattern: numbers[1]))
        }
    }

    /// Records the loss of facts in LevelDB directly, synced, before the damaged files that show the loss are moved
    /// away.
    func noteLoss(in store: EpochStore) throws(LarderError) {
        let (pipeline, context) = (database.pipeline, database.context)
        let loss = Loss(
            sequence: max(pipeline.everythingApplied.sequence, context.sequences.base) + 1, time: database.now())
        let batch = LarderLevelDB.WriteBatch()
        let record = Self.record(loss.bytes, now: loss.time)
        batch.put([KeyKind.record] + Loss.key, record.stored)
        try store.write(batch, sync: true)
        countLoss()
    }

    /// Counts a loss of facts, for INFO.
    package func countLoss() { database.context.statistics.factLosses.add() }

    // MARK: The start

    /// Finds the ledger's directory. If it was removed, creates an empty directory. A removed ledger counts as damaged:
    /// the ledger's operations in the journal are kept, and the loss is recorded.
    /// - Returns: whether there is a ledger.
    /// - Throws: if something else is in its place.
    static func findOrRemakeDirectory(_ context: EngineContext) throws(LarderError) -> Bool {
        let path = context.directory + "/" + DatabaseName.ledger
        let wasThere = context.sequences.previousDatabases.contains(DatabaseName.ledger)
        switch DatabaseDirectory(path) {
        case .database, .unreadable: return true
        case .absent where wasThere:
            context.report(
                .error,
                "\(path) is missing: the purges of tags, the functions and the origins of the larder are lost, except for "
                    + "those in the journal. Entries whose tags were purged before may be served as stale; load functions and "
                    + "set origins again")
            try LarderError.wrapping("open larder") { () throws(FileError) in try FileSystem.makeDirectories(path) }
            return true
        case .absent: return false
        case .foreign where wasThere: throw LarderError(.io, foreignMessage(path), operation: "open larder")
        case .foreign:
            context.report(.error, "\(foreignMessage(path)); until then purges, functions and origins cannot be stored")
            return false
        }
    }

    /// Returns the text of the error if something else is in the ledger's place.
    static func foreignMessage(_ path: String) -> String { "\(path) is not the ledger of this larder: move it away" }

    /// Reads all facts, unless they were read before, and passes the purges of tags to their databases. Called before
    /// other threads can use the databases.
    /// - Parameter afterLoss: whether facts may be lost with a part of the journal.
    func load(_ databases: [Database], afterLoss: Bool = false) throws(LarderError) {
        guard database.context.larder.factsLost.load(ordering: .relaxed) < 0 else { return }
        if afterLoss, database.exists {
            try database.prepare(forWriting: false)
            if let store = database.appliedState.store {
                try noteLoss(in: store)
                database.context.report(
                    .error,
                    "purges of tags, functions and origins may be lost, because a part of the journal is lost: entries "
                        + "with tags that were stored until now are stale")
            }
        }
        let found = try readOrSalvage()
        database.context.larder.factsLost.store(found.loss.map { max(1, $0.time) } ?? 0, ordering: .relaxed)
        for database in databases where database !== self.database {
            database.tagPurges.adopt(found.purges[database.name], found.loss)
        }
    }

    private struct Found {
        var loss: Loss?
        var purges: [String: TagPurges] = [:]
    }

    /// Reads the facts. A damaged ledger is salvaged first, because the larder must start; the salvage records the
    /// loss.
    private func readOrSalvage() throws(LarderError) -> Found {
        do throws(LarderError) {
            return try read()
        } catch {
            guard error.code == .damaged, let store = database.appliedState.store else { throw error }
            database.context.reportDamage("the larder's record of purges, functions and origins is damaged: \(error)")
            try database.salvage(store, error)
            return try read()
        }
    }

    private func read() throws(LarderError) -> Found {
        var found = Found()
        guard database.exists else { return found }
        try database.prepare(forWriting: false)
        let now = database.now()
        var contents: [String: TagPurges.Content] = [:]
        if let cursor = try database.cursor() {
            defer { cursor.close() }
            while try cursor.next() {
                let key = Array(try cursor.key().bytes)
                let value = try cursor.record().payload
                if key == Loss.key {
                    found.loss = Loss(parsing: Array(value))
                } else if let (name, tag) = TagFacts.names(of: key) {
                    TagFacts.merge(value, of: tag, into: &contents[name, default: TagPurges.Content()], now: now)
                }
            }
        }
        found.purges = contents.mapValues { TagPurges($0) }
        return found
    }
}

extension DatabaseTable {
    /// The larder's ledger; nil after the larder was closed.
    var ledger: Ledger? { all.first(where: \.isLedger).map(Ledger.init) }
}
