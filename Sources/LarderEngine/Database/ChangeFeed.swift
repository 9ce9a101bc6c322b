import Synchronization
import Threading

/// By whom and by what an entry is written. Means nothing to the engine; who listens to changes gets it back.
package struct WriteOrigin: Hashable, Sendable {
    /// What kind of command it is.
    package var tag: UInt16
    /// Which client; 0 for none.
    package var client: Int64

    package init(tag: UInt16 = 0, client: Int64 = 0) {
        self.tag = tag
        self.client = client
    }
}

/// What happened to one entry, and is committed.
package struct EntryChange: Sendable {
    package enum Kind: Sendable {
        case stored(RecordHeader)
        case removed
        /// It was found to be expired when its space was reclaimed; `deadline` is when that was.
        case swept(RecordHeader, deadline: Int64)
    }

    /// What there was before.
    package enum Former: Sendable, Equatable {
        /// Nobody looked.
        case unknown
        /// Nothing that could be read.
        case absent
        case fresh(DeadlineRule)
    }

    package let database: Database
    package let key: [UInt8]
    package let kind: Kind
    package let former: Former
    package let origin: WriteOrigin
}

/// Is told what was committed, in the order of the commits, before those who wrote it get their answer. Called by any
/// thread, possibly with shards locked: must be short, must not block, must not call the engine.
package protocol ChangeObserver: AnyObject, Sendable {
    func changed(_ changes: [EntryChange])
    /// A database has lost all its entries.
    func emptied(_ database: Database)
    /// Entries of a database that follow its policy may end at another time than before.
    func policyChanged(_ database: Database)
}

/// Tells an observer what is committed, while there is one that wants to know.
///
/// While it is off a write costs one relaxed load more. What is applied after it was turned on is told; of what is under
/// way meanwhile, a part.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the observer is read and written with the lock held.
package final class ChangeFeed: @unchecked Sendable {
    private let isTurnedOn = Atomic<Bool>(false)
    private let lock = Lock()
    private weak var observer: (any ChangeObserver)?

    init() {}

    /// Whether changes are to be noted.
    package var isOn: Bool { isTurnedOn.load(ordering: .relaxed) }

    package func observe(_ observer: any ChangeObserver) { lock.withLock { self.observer = observer } }

    package func turn(on: Bool) { isTurnedOn.store(on, ordering: .sequentiallyConsistent) }

    func tell(_ changes: [EntryChange]) {
        if !changes.isEmpty { current?.changed(changes) }
    }

    /// Tells how a database differs from what it was.
    func tell(_ database: Database, was: Database.State, is new: Database.State) {
        guard isOn, let current else { return }
        if was.store !== new.store { current.emptied(database) }
        if was.rules != new.rules { current.policyChanged(database) }
    }

    private var current: (any ChangeObserver)? { isOn ? lock.withLock { observer } : nil }
}

extension Database {
    /// Notes operations of a unit with the batch that commits it, for ``ChangeFeed``.
    func noteChanges(_ operations: [CommitOperation], in batch: JournalBatch) {
        guard context.changes.isOn else { return }
        for operation in operations where !operation.note.isUnseen {
            let (kind, note): (EntryChange.Kind, ChangeNote) =
                switch operation {
                case .put(_, let record, let note): (.stored(record.header), note)
                case .putLong(_, let header, let note): (.stored(header), note)
                case .remove(_, let note): (.removed, note)
                }
            batch.changes.add(
                EntryChange(
                    database: self, key: Array(operation.key.bytes), kind: kind, former: note.former,
                    origin: note.origin))
        }
    }

    /// An entry that is expired and whose space is reclaimed; nil while nobody wants to know.
    func sweptChange(_ key: [UInt8], _ header: RecordHeader, _ rules: FreshnessRules) -> EntryChange? {
        guard context.changes.isOn, let deadline = rules.deadline(header) else { return nil }
        return EntryChange(
            database: self, key: key, kind: .swept(header, deadline: deadline), former: .absent, origin: WriteOrigin())
    }
}

/// The changes in a batch.
final class ChangeList: CommitNotes {
    private(set) var changes: [EntryChange] = []

    var count: Int { changes.count }

    func add(_ change: EntryChange) { changes.append(change) }

    func clear() { if !changes.isEmpty { changes = [] } }

    /// Puts the changes of one unit, noted database by database, in the order in which they were made.
    /// - Parameters:
    ///   - first: where they begin.
    ///   - steps: their places in the unit, as they are noted; equal ones stay as they are.
    func order(from first: Int, by steps: [Int]) {
        // Whether changes are noted may have changed meanwhile.
        guard changes.count - first == steps.count else { return }
        let order = steps.indices.sorted { (steps[$0], $0) < (steps[$1], $1) }
        let noted = Array(changes[first...])
        for (place, index) in order.enumerated() { changes[first + place] = noted[index] }
    }
}

extension JournalBatch {
    /// What the operations are to those who listen to changes. Made when it is asked for: only while somebody does listen.
    var changes: ChangeList {
        if let list = notes as? ChangeList { return list }
        let list = ChangeList()
        notes = list
        return list
    }
}
