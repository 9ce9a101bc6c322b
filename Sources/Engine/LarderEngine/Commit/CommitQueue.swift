/// The applied commit units that wait for their commit, in order.
///
/// A value that is never copied; the pipeline's lock guards it.
struct CommitQueue {
    /// A batch of writes, or one change of a whole database. The committing thread processes one item after the other.
    enum Item {
        /// The changes of entries of all commit units that arrived together. They become one frame of the journal.
        case writes(JournalBatch, units: Int, Durability)
        /// A change of a whole database: `perform` makes it durable, `committed` runs afterwards.
        case control(sequence: UInt64, perform: () throws(LarderError) -> Void, committed: (UInt64) -> Void)

        var lastSequence: UInt64 {
            switch self {
            case .writes(let batch, _, _): batch.lastSequence
            case .control(let sequence, _, _): sequence
            }
        }

        /// The changes of entries, if there were subscribers; nil if a whole database is changed.
        var changes: [EntryChange]? {
            guard case .writes(let batch, _, _) = self, batch.committed == nil else { return nil }
            return batch.changes
        }
    }

    private var items: [Item] = []
    /// The batch to which the next writes are added; nil if there is none yet.
    private var open: JournalBatch?
    private var openUnits = 0
    /// The strictest durability of the open batch's units.
    private var openLevel = Durability.os
    /// Batches to reuse, at most ``sparesMax``.
    private var spares: [JournalBatch] = []

    private static let sparesMax = 3
    /// The size in bytes above which a batch is closed. Its frame is written with one call.
    private static let batchBytesMax = 4 << 20

    var isEmpty: Bool { items.isEmpty && open == nil }
    /// All items, with the open batch.
    var all: [Item] { items + (open.map { [.writes($0, units: openUnits, openLevel)] } ?? []) }
    /// Whether slow work waits: an fsync, or a change of a whole database.
    var hasSlowWork: Bool { !items.isEmpty || openLevel == .always }

    /// Returns the batch to which the writes of one more commit unit are to be added. It is not retained, because all
    /// writers would change the same counter: the queue keeps it while the pipeline's lock is held.
    mutating func batch(_ level: Durability) -> Unmanaged<JournalBatch> {
        if let open, open.byteCount > Self.batchBytesMax { close() }
        openUnits += 1
        if level.rank > openLevel.rank { openLevel = level }
        if let open { return .passUnretained(open) }
        let batch = spares.popLast() ?? JournalBatch()
        open = batch
        return .passUnretained(batch)
    }

    /// Returns a new batch for only one commit unit. Call ``end()`` after adding its writes.
    mutating func batchAlone(_ level: Durability) -> Unmanaged<JournalBatch> {
        close()
        return batch(level)
    }

    /// Closes the batch, so that the next writes go to another one.
    mutating func end() { close() }

    mutating func add(control item: Item) {
        close()
        items.append(item)
    }

    private mutating func close() {
        guard let open else { return }
        items.append(.writes(open, units: openUnits, openLevel))
        self.open = nil
        openUnits = 0
        openLevel = .os
    }

    mutating func take() -> [Item] {
        close()
        return exchange(&items, with: [])
    }

    /// Puts the undecided last part of the taken items back at the front of the queue.
    mutating func putBack(_ rest: ArraySlice<Item>) { items.insert(contentsOf: rest, at: 0) }

    /// Keeps batches to reuse them.
    mutating func recycle(_ used: some Sequence<Item>) {
        for case .writes(let batch, _, _) in used where spares.count < Self.sparesMax {
            batch.clear()
            spares.append(batch)
        }
    }
}
