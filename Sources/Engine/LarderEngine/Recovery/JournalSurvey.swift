import LarderPlatform

/// The first of two passes through the journal: finds out what must be known before the larder is used, and applies the
/// operations of the ledger, because these concern all databases. ``BackgroundReplay`` is the second pass.
///
/// Not thread-safe. Used with all shard locks held.
final class JournalSurvey {
    /// A database's part of the journal, of one epoch.
    private struct Part {
        let name: [UInt8]
        let epoch: UInt64
        /// Nil if the larder does not have the database.
        let database: Database?
        /// Whether the operations are applied, not skipped.
        let counts: Bool
        /// The sequence of the last group with operations of the part.
        var last: UInt64 = 0
    }

    private let databases: [String: Database]
    private let noteEpoch: (UInt64) -> Void
    private let applier: JournalApplier
    @exclusivity(unchecked) private var found: [Part] = []
    /// The index in `found` of the next operations' part.
    @exclusivity(unchecked) private var current = -1
    /// Whether the next operations count.
    @exclusivity(unchecked) private var counts = false
    /// The latest time at which a record was stored whose operation counts.
    @exclusivity(unchecked) private(set) var latestStored: Int64 = 0

    init(_ all: [Database], noteEpoch: @escaping (UInt64) -> Void) {
        let ledger = all.first(where: \.isLedger)
        databases = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
        self.noteEpoch = noteEpoch
        applier = JournalApplier(usesThreads: false) { $0 == DatabaseName.ledger ? ledger : nil }
    }

    /// Reads the operations of a commit group.
    func visit(_ bytes: UnsafeRawBufferPointer, _ sequence: UInt64) {
        var payload = JournalPayload(bytes)
        var hasFacts = false
        while true {
            switch payload.next() {
            case .database(let name, let epoch):
                look(for: name, epoch)
                found[current].last = sequence
                hasFacts = hasFacts || found[current].database?.isLedger == true
            case .put(_, let record):
                if counts { latestStored = max(latestStored, record.storedAt) }
            case .remove: break
            case .end, .malformed:
                if hasFacts { applier.add(bytes, sequence) }
                return
            }
        }
    }

    private func look(for name: UnsafeRawBufferPointer, _ epoch: UInt64) {
        if current >= 0, isPart(current, name, epoch) { return }
        current = found.indices.first { isPart($0, name, epoch) } ?? add(Array(name), epoch)
        counts = found[current].counts
    }

    private func isPart(_ index: Int, _ name: UnsafeRawBufferPointer, _ epoch: UInt64) -> Bool {
        found[index].epoch == epoch && found[index].name.withUnsafeBytes { ByteOrder.compare($0, name) == 0 }
    }

    private func add(_ name: [UInt8], _ epoch: UInt64) -> Int {
        noteEpoch(epoch)
        let database = databases[String(decoding: name, as: UTF8.self)]
        found.append(
            Part(name: name, epoch: epoch, database: database, counts: database?.durable.counts(epoch) ?? false))
        return found.count - 1
    }

    /// Applies the rest of the ledger's operations.
    func finish() { applier.finish() }

    /// The names of databases that operations refer to but the larder does not have.
    var unknownNames: Set<String> {
        Set(found.lazy.filter { $0.database == nil }.map { String(decoding: $0.name, as: UTF8.self) })
    }

    /// The parts that are still to be applied, in the order of their ends.
    var parts: [ReplayPlan.Part] {
        var ends: [ObjectIdentifier: ReplayPlan.Part] = [:]
        let filled = Set(found.lazy.filter(\.counts).compactMap { $0.database.map { ObjectIdentifier($0) } })
        for part in found {
            guard let database = part.database, !database.isLedger, filled.contains(ObjectIdentifier(database)) else {
                continue
            }
            // Include operations that do not count: their epoch is compared with the database's while it is locked.
            let last = max(part.last, ends[ObjectIdentifier(database)]?.last ?? 0)
            ends[ObjectIdentifier(database)] = ReplayPlan.Part(database: database, last: last)
        }
        return ends.values.sorted { $0.last < $1.last }
    }
}

/// What the second pass through the journal has to apply.
struct ReplayPlan: Sendable {
    /// A database that has operations in the journal.
    struct Part: Sendable {
        let database: Database
        /// The sequence of the last group with its operations.
        let last: UInt64
    }

    /// In the order of their ends.
    let parts: [Part]
    /// What the first pass has found.
    let report: JournalReport
}
