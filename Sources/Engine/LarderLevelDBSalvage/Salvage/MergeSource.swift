import LarderLevelDBFormat
import LarderPlatform

/// Collects the damage that the sources find in the tables.
final class SalvageSink {
    var report = SalvageReport()
    var lostRanges = LostRanges()
    /// The gaps that contain the current key or a later one.
    var gaps: [Gap] = []

    /// Reports a part of a table that cannot be read. A source calls this before it moves to any key of the affected
    /// range.
    /// - Parameter gap: the keys whose newest version may be lost; nil if no entry is lost.
    func lost(_ damage: SalvageDamage, _ gap: Gap?) {
        report.add(damage)
        guard let gap else { return }
        gaps.append(gap)
        lostRanges.add(gap.range)
    }
}

/// A sorted sequence of versions of keys, from tables or logs. Versions are ordered by key, and versions of one key by
/// sequence, the newest first.
protocol MergeSource: AnyObject {
    /// The key of the current version. While no version is loaded, a lower bound of the next key.
    var position: UnsafeRawBufferPointer { get }
    /// Whether the current version is loaded. If not, call `step`.
    var isLoaded: Bool { get }
    var isAtEnd: Bool { get }
    var sequence: UInt64 { get }
    /// The value of the current version; nil for a removal.
    var value: UnsafeRawBufferPointer? { get }
    var origin: Origin { get }
    /// Moves to the next version, or makes progress towards it, for example by reading a block. Check ``isLoaded``
    /// afterwards.
    func step() throws(SalvageError)
}

final class LogSource: MergeSource {
    private let contents: LogContents
    private var index = 0
    private let nothing = UnsafeRawBufferPointer(start: nil, count: 0)

    init(_ contents: LogContents) { self.contents = contents }

    var isAtEnd: Bool { index == contents.versions.count }
    var isLoaded: Bool { !isAtEnd }
    var position: UnsafeRawBufferPointer { isAtEnd ? nothing : contents.versions[index].key }
    var sequence: UInt64 { isAtEnd ? 0 : contents.versions[index].sequence }
    var value: UnsafeRawBufferPointer? { isAtEnd ? nil : contents.versions[index].value }
    var origin: Origin { .log(number: isAtEnd ? 0 : contents.versions[index].log) }

    func step() { if !isAtEnd { index += 1 } }
}

/// A heap of the sources to merge, ordered by their positions (keys). Among sources at the same key, those without a
/// loaded version come first.
struct SourceHeap {
    private var sources: [any MergeSource] = []

    var top: (any MergeSource)? { sources.first }

    mutating func add(_ source: any MergeSource) {
        sources.append(source)
        sources.raiseLast(Self.isBefore)
    }

    /// Restores the order of the heap after the top source has moved. Removes the source if it is at its end.
    mutating func fix() {
        guard let top = sources.first else { return }
        if top.isAtEnd {
            sources[0] = sources[sources.count - 1]
            sources.removeLast()
        }
        sources.lowerFirst(Self.isBefore)
    }

    /// Calls `body` with all sources at `key`, which must be the key of the top source. The parents of such a source
    /// are at this key too, so the search does not look below a source with another key.
    func forEachAtTop(_ key: UnsafeRawBufferPointer, _ body: (any MergeSource) -> Void) { visit(0, key, body) }

    private func visit(_ index: Int, _ key: UnsafeRawBufferPointer, _ body: (any MergeSource) -> Void) {
        guard index < sources.count, ByteOrder.compare(sources[index].position, key) == 0 else { return }
        body(sources[index])
        visit(2 * index + 1, key, body)
        visit(2 * index + 2, key, body)
    }

    private static func isBefore(_ left: any MergeSource, _ right: any MergeSource) -> Bool {
        let order = ByteOrder.compare(left.position, right.position)
        return order != 0 ? order < 0 : !left.isLoaded && right.isLoaded
    }
}

/// A set of lost keys, stored as ranges.
struct LostRanges {
    private var collected: [KeyRange] = []
    private static let countMax = 1 << 16

    mutating func add(_ range: KeyRange) {
        collected.append(range)
        guard collected.count > Self.countMax else { return }
        collected = ranges()
        // To limit memory, adjacent ranges are merged. This may report too many lost keys, but never too few.
        if collected.count > Self.countMax / 2 {
            collected = stride(from: 0, to: collected.count, by: 2).map { index in
                KeyRange(lower: collected[index].lower, upper: collected[min(index + 1, collected.count - 1)].upper)
            }
        }
    }

    /// Returns the fewest ranges that contain all lost keys, ascending and disjoint.
    func ranges() -> [KeyRange] {
        var union: [KeyRange] = []
        for range in collected.sorted(by: { KeyRange.isLess($0.lower, $1.lower) }) {
            guard let last = union.last, let end = last.upper else {
                if union.isEmpty { union.append(range) }
                continue
            }
            if KeyRange.isLess(end, range.lower) {
                union.append(range)
            } else if range.upper.map({ KeyRange.isLess(end, $0) }) ?? true {
                union[union.count - 1].upper = range.upper
            }
        }
        return union
    }
}
