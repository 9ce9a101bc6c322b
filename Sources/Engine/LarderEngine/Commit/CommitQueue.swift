/// Applied units that wait for their commit, in order.
///
/// A value that is never copied; the pipeline's lock guards it.
struct CommitQueue {
    /// The work of one round of the leader.
    enum Item {
        /// Changes of entries, of as many commit units as arrived together. They become one frame of the journal.
        case writes(JournalBatch, units: Int, Durability)
        /// A change of a whole database: `perform` makes it durable, `committed` runs afterwards.
        case control(sequence: UInt64, perform: () throws(LarderError) -> Void, committed: (UInt64) -> Void)

        var lastSequence: UInt64 {
            switch self {
            case .writes(let batch, _, _): batch.lastSequence
            case .control(let sequence, _, _): sequence
            }
        }
    }

    private var items: [Item] = []
    /// The batch for the next writes; nil when there is none.
    private var open: JournalBatch?
    private var openUnits = 0
    /// The strictest durability of the open batch's units.
    private var openLevel = Durability.os
    /// Batches to reuse, at most ``sparesMax``.
    private var spares: [JournalBatch] = []

    private static let sparesMax = 3
    /// A batch of this size is closed: its frame is written with one call.
    private static let batchBytesMax = 4 << 20

    var isEmpty: Bool { items.isEmpty && open == nil }
    /// Whether slow work waits: an fsync, or a change of a whole database.
    var hasSlowWork: Bool { !items.isEmpty || openLevel == .always }

    /// The batch for the writes of one more commit unit.
    mutating func batch(_ level: Durability) -> JournalBatch {
        if let open, open.byteCount > Self.batchBytesMax { close() }
        openUnits += 1
        if level.rank > openLevel.rank { openLevel = level }
        if let open { return open }
        let batch = spares.popLast() ?? JournalBatch()
        open = batch
        return batch
    }

    /// A batch for one commit unit alone. Call ``end()`` after its writes.
    mutating func batchAlone(_ level: Durability) -> JournalBatch {
        close()
        return batch(level)
    }

    /// Closes the batch.
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

    /// Removes and returns all items.
    mutating func take() -> [Item] {
        close()
        defer { items = [] }
        return items
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
