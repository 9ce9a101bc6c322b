/// Receives the damage that a source finds while it is read.
protocol SalvageSink: AnyObject {
    /// Called for a part of a table that cannot be read. A source calls it before it returns any key of the affected
    /// range.
    func lost(_ damage: SalvageDamage, _ gap: Gap?)
}

/// A source of versions, ordered by key, and for one key by sequence descending.
protocol MergeSource: AnyObject {
    /// The key of the source's version. While no version is loaded, a lower bound of its next key.
    var position: UnsafeRawBufferPointer { get }
    /// Whether a version is loaded. If not, call `step`.
    var isLoaded: Bool { get }
    var isAtEnd: Bool { get }
    var sequence: UInt64 { get }
    /// nil for a removal.
    var value: UnsafeRawBufferPointer? { get }
    var origin: Origin { get }
    /// Loads the next version if none is loaded, otherwise moves to the next one.
    func step() throws(SalvageError)
}

/// The contents of the logs.
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
