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

/// The versions in the logs, as a source.
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
