/// What is applied and waits to be committed, in order.
///
/// A value that is never copied; the pipeline's lock guards it.
struct CommitQueue {
    /// What one turn of the leader commits.
    enum Item {
        /// Changes of entries of as many commit units as came together. They become one frame of the journal.
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
    /// The batch that takes what is written next; nil when there is none.
    private var open: JournalBatch?
    private var openUnits = 0
    /// The strictest that a unit of the open batch asks for.
    private var openLevel = Durability.os
    /// Batches to use again, at most ``sparesMax``.
    private var spares: [JournalBatch] = []

    private static let sparesMax = 3
    /// A batch that has grown so large is closed: its frame is written in one go.
    private static let batchBytesMax = 4 << 20

    var isEmpty: Bool { items.isEmpty && open == nil }
    /// Whether something waits that takes long: an fsync, or a change of a whole database.
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

    /// The batch for the writes of a commit unit that share it with no others. ``end()`` comes after them.
    mutating func batchAlone(_ level: Durability) -> JournalBatch {
        close()
        return batch(level)
    }

    /// Nothing more is put into the batch.
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

    /// Takes everything out.
    mutating func take() -> [Item] {
        close()
        defer { items = [] }
        return items
    }

    /// Takes batches back to be used again.
    mutating func recycle(_ used: [Item]) {
        for case .writes(let batch, _, _) in used where spares.count < Self.sparesMax {
            batch.clear()
            spares.append(batch)
        }
    }
}
