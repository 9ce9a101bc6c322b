import LarderPlatform
import Synchronization

/// The indexes of a database while it is open: their extractors, how far they are built, and the hints of the entries
/// that LevelDB does not have yet.
///
/// Thread-safe.
final class DatabaseIndexes: Sendable {
    private struct State {
        var open: [OpenIndex] = []
        var progress: [UInt64: KnownProgress] = [:]
        var counts: [UInt64: HintCount] = [:]
        /// Extractors that the maker cannot make, by the definitions.
        var declared: [[UInt8]: any IndexExtractor] = [:]
    }

    private struct KnownProgress {
        /// The epoch (number of the LevelDB) to which `progress` applies.
        let epoch: UInt64
        let progress: IndexProgress
    }

    /// The number of hints that LevelDB had.
    struct HintCount {
        /// The epoch (number of the LevelDB), and its ``EpochStore/writeGeneration`` before the count.
        var epoch: UInt64
        var generation: UInt64
        var hints: Int
        /// The share of them that was stale, from a sample.
        var staleShare: Double
    }

    private let maker: (any IndexMaker)?
    private let state = Locked(State())
    let dirty: DirtyHints
    let stale = StaleHints()
    /// How many hints were written to LevelDB, and records removed from it, since the stale hints were last looked for.
    let churn = Atomic<Int>(0)
    /// The approximate number of hints that were not stale then.
    let keptCount = Atomic<Int>(0)
    /// The number of bytes of a record's hints, as measured by the last checkpoint.
    private let measuredHintBytes = Atomic<Int>(0)
    /// The estimate of the bytes of a hint before the first checkpoint.
    private static let usualHintBytes = 48

    /// Whether hints become stale faster than ``HintCleaning`` removes them. Then checkpoints remove the hints of the
    /// records that they overwrite, which takes a read for each.
    var isCleaningTooSlow: Bool {
        churn.load(ordering: .relaxed) > 3 * max(Self.quickCount, keptCount.load(ordering: .relaxed))
    }

    /// The number of hints that are always cleaned quickly enough.
    private static let quickCount = 1 << 14

    /// How many queries do not try to run on an event loop, because earlier ones could not.
    let loopPause = Atomic<Int>(0)
    /// The length of the next such pause.
    let nextLoopPause = Atomic<Int>(1)

    /// Whether LevelDB may have hints of indexes that were dropped.
    let mayHaveDropped = Atomic<Bool>(true)

    init(_ maker: (any IndexMaker)?, wake: @escaping @Sendable () -> Void) {
        self.maker = maker
        dirty = DirtyHints(wake)
    }

    /// Whether there are no indexes. For all shard locks held.
    var isUnused: Bool { state.withLock { $0.open.isEmpty } }

    /// The applied and the durable indexes, with their extractors.
    var open: [OpenIndex] { state.withLock { $0.open } }

    /// Takes over the indexes of the database. Called with all shard locks held.
    /// - Returns: nil if nothing has changed; otherwise whether there are new ones.
    func follow(_ indexes: [DatabaseIndex]) -> Bool? {
        state.withLock { state in
            guard state.open.map(\.index) != indexes else { return nil }
            let old = state.open
            state.open = indexes.map { index in
                old.first { $0.index == index }
                    ?? OpenIndex(index: index, extractor: extractor(of: index.definition, state))
            }
            let numbers = Set(indexes.map(\.number))
            state.progress = state.progress.filter { numbers.contains($0.key) }
            state.counts = state.counts.filter { numbers.contains($0.key) }
            return !numbers.subtracting(old.map(\.index.number)).isEmpty
        }
    }

    /// The approximate number of bytes of a record's hints; 0 without indexes.
    var hintBytesPerRecord: Int {
        let count = state.withLock { $0.open.count }
        return count == 0 ? 0 : max(Self.usualHintBytes * count, measuredHintBytes.load(ordering: .relaxed))
    }

    /// Records the size of the hints of some records.
    func note(hintBytes: Int, records: Int) {
        if records > 0 { measuredHintBytes.store(hintBytes / records, ordering: .relaxed) }
    }

    func extractor(of definition: [UInt8]) -> (any IndexExtractor)? {
        state.withLock { extractor(of: definition, $0) }
    }

    private func extractor(of definition: [UInt8], _ state: State) -> (any IndexExtractor)? {
        state.declared[definition] ?? maker?.extractor(of: definition)
    }

    /// Uses an extractor for a definition that has none. Called with all shard locks held.
    func declare(_ extractor: any IndexExtractor, of definition: [UInt8]) {
        state.withLock { state in
            state.declared[definition] = extractor
            for (place, open) in state.open.enumerated() where open.index.definition == definition {
                state.open[place] = OpenIndex(index: open.index, extractor: extractor)
            }
        }
    }

    // MARK: Progress

    /// Returns how far an index is built in a store. Reads LevelDB at the first call.
    func progress(_ number: UInt64, in store: EpochStore) throws(LarderError) -> IndexProgress {
        // A LevelDB without files has no records. Its first checkpoint records that the indexes are ready.
        if !store.isMade { return .ready }
        if let known = state.withLock({ $0.progress[number] }), known.epoch == store.epoch { return known.progress }
        let found = try store.indexProgress(number)
        note(found, of: number, in: store)
        return found
    }

    /// Records how far an index is built, after that was written to LevelDB; nil if it has to be read from there.
    func note(_ progress: IndexProgress?, of number: UInt64, in store: EpochStore) {
        state.withLock { state in
            guard state.open.contains(where: { $0.index.number == number }) else { return }
            state.progress[number] = progress.map { KnownProgress(epoch: store.epoch, progress: $0) }
        }
    }

    /// Returns the last count of an index's hints in a store; nil if they were not counted.
    func count(_ number: UInt64, in store: EpochStore) -> HintCount? {
        state.withLock { $0.counts[number] }.flatMap { $0.epoch == store.epoch ? $0 : nil }
    }

    /// Makes the next caller that needs the exact number of an index's hints count again.
    func noteRemoval(from number: UInt64) { state.withLock { $0.counts[number]?.generation = .max } }

    func note(_ count: HintCount, of number: UInt64) { state.withLock { $0.counts[number] = count } }
}
