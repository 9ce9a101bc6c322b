import LarderPlatform
import Synchronization

/// Hints of one index in the order of (term, key), in memory. Does not change.
final class HintRun: Sendable {
    /// A hint in `bytes`: its term, and then its entry's key.
    struct Item {
        var offset: Int
        var keyCount: Int32
        var termCount: UInt16
    }

    private let bytes: [UInt8]
    private let items: [Item]

    private init(_ bytes: [UInt8], _ items: [Item]) {
        self.bytes = bytes
        self.items = items
    }

    static let empty = HintRun([], [])

    var count: Int { items.count }

    /// Passes the term and the key of a hint to `body`, which are adjacent in memory.
    func withHint<Result>(
        _ index: Int, _ body: (_ term: UnsafeRawBufferPointer, _ key: UnsafeRawBufferPointer) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { bytes in
            let item = items[index]
            let end = item.offset + Int(item.termCount)
            return body(
                UnsafeRawBufferPointer(rebasing: bytes[item.offset..<end]),
                UnsafeRawBufferPointer(rebasing: bytes[end..<(end + Int(item.keyCount))]))
        }
    }

    /// Passes the term and the key of a hint, as one sequence of bytes, to `body`. As no term is the beginning of
    /// another, the order of these sequences is that of (term, key).
    func withBytes<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body(Self.bytes(items[index], $0)) }
    }

    private static func bytes(_ item: Item, _ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[item.offset..<(item.offset + Int(item.termCount) + Int(item.keyCount))])
    }

    /// Returns the index of the first hint that is not less than `bound`; ``count`` if there is none.
    func lowerBound(_ bound: [UInt8]) -> Int {
        bound.withUnsafeBytes { bound in
            bytes.withUnsafeBytes { bytes in
                items.partitioningIndex { ByteOrder.compare(Self.bytes($0, bytes), bound) >= 0 }
            }
        }
    }

    /// Collects the hints of a run.
    struct Maker {
        private var bytes: [UInt8] = []
        private var items: [Item] = []

        /// - Parameter count: the expected number of hints.
        init(reserving count: Int = 0) {
            if count == 0 { return }
            bytes.reserveCapacity(48 * count)
            items.reserveCapacity(count)
        }

        var isEmpty: Bool { items.isEmpty }
        var count: Int { items.count }

        /// Adds a hint.
        /// - Parameter hint: the term and the key.
        mutating func add(_ hint: UnsafeRawBufferPointer, termCount: Int) {
            items.append(
                Item(
                    offset: bytes.count, keyCount: Int32(hint.count - termCount), termCount: UInt16(termCount)))
            bytes.append(contentsOf: hint)
        }

        /// Returns the run of the hints, which were added in order, or in the reverse order.
        consuming func run(isReversed: Bool = false) -> HintRun {
            HintRun(bytes, isReversed ? items.reversed() : items)
        }

        fileprivate mutating func add(_ run: HintRun) {
            let start = bytes.count
            bytes.append(contentsOf: run.bytes)
            for var item in run.items {
                item.offset += start
                items.append(item)
            }
        }

        /// Returns the run of the hints, which were added in any order, each once.
        consuming func sortedRun() -> HintRun {
            var order = ByteStringSort()
            var sorted = Maker()
            sorted.bytes.reserveCapacity(bytes.count)
            sorted.items.reserveCapacity(items.count)
            bytes.withUnsafeBytes { bytes in
                items.withUnsafeBufferPointer { items in
                    order.sort(items.count) { HintRun.bytes(items[$0], bytes) }
                    for place in items.indices {
                        let item = items[order[place]]
                        let hint = HintRun.bytes(item, bytes)
                        if place > 0, ByteOrder.compare(hint, HintRun.bytes(items[order[place - 1]], bytes)) == 0 {
                            continue
                        }
                        sorted.add(hint, termCount: Int(item.termCount))
                    }
                }
            }
            return sorted.run()
        }
    }

    /// Returns a run with the hints of several runs, each once.
    static func merged(_ runs: some Sequence<HintRun>) -> HintRun {
        var maker = Maker()
        for run in runs { maker.add(run) }
        return maker.sortedRun()
    }
}

/// The keys of a shard that were written since their terms were last extracted. Only in a database with indexes.
///
/// The shard's lock guards everything except `total`.
final class ChangedKeys {
    private let total: ChangedKeyCount
    /// For each key its length (4 bytes), and its bytes.
    private var bytes: [UInt8] = []
    private var count = 0
    /// Whether the keys are no longer noted, because there are too many: the terms of all dirty entries are missing.
    private var isEverything: Bool

    /// The size of the list in bytes above which keys are no longer noted: 1 MiB.
    private static let bytesMax = 1 << 20

    /// Creates a list for a shard whose dirty entries' terms are all missing.
    init(_ total: ChangedKeyCount, dirtyCount: Int) {
        self.total = total
        isEverything = true
        note(max(1, dirtyCount))
    }

    /// Notes all dirty entries.
    func addEverything(dirtyCount: Int) {
        (bytes, isEverything) = ([], true)
        note(max(1, dirtyCount))
    }

    private func note(_ added: Int) {
        count += added
        total.add(added)
    }

    func add(_ key: UnsafeRawBufferPointer) {
        note(1)
        if isEverything { return }
        Self.append(key, to: &bytes)
        if bytes.count > Self.bytesMax {
            isEverything = true
            bytes = []
        }
    }

    /// Takes the keys from the list.
    /// - Parameter addAll: appends the keys of all dirty entries to a list.
    func take(_ addAll: (inout [UInt8]) -> Void) -> [UInt8] {
        guard count > 0 else { return [] }
        if isEverything { addAll(&bytes) }
        total.add(-count)
        defer { (bytes, count, isEverything) = ([], 0, false) }
        return bytes
    }

    static func append(_ key: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(key.count)) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: key)
    }

    /// Calls `body` with each key of a list.
    static func forEach(_ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) -> Void) {
        bytes.withUnsafeBytes { bytes in
            var offset = 0
            while offset < bytes.count {
                let count = Int(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
                offset += 4
                body(UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)]))
                offset += count
            }
        }
    }
}

/// The number of keys in the lists of all shards of a database. Thread-safe.
final class ChangedKeyCount: Sendable {
    private let count = Atomic<Int>(0)
    private let wake: @Sendable () -> Void
    /// The number of keys at which their terms are extracted in the background, and that at which writers help.
    static let many = 1024
    static let tooMany = 2048

    init(_ wake: @escaping @Sendable () -> Void) { self.wake = wake }

    var isZero: Bool { count.load(ordering: .acquiring) == 0 }
    var areMany: Bool { value >= Self.many }
    var areTooMany: Bool { value >= Self.tooMany }
    var value: Int { count.load(ordering: .relaxed) }

    func add(_ number: Int) {
        let (old, new) = count.wrappingAdd(number, ordering: .acquiringAndReleasing)
        if old < Self.many, new >= Self.many { wake() }
    }
}

extension Array {
    /// Returns the first index whose element fulfils a condition, by binary search. All later elements must fulfil it
    /// too.
    @inlinable
    package func partitioningIndex(where fulfils: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = low + (high - low) / 2
            if fulfils(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
