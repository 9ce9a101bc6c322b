import LarderLevelDBFormat
import LarderPlatform

/// The content of all logs: every readable put and delete, sorted, and the gaps (ranges of keys with lost versions).
final class LogContents {
    /// A version of a key. Its bytes are in one of `memories`.
    struct Version {
        let key: UnsafeRawBufferPointer
        /// The value; nil if the version is a removal.
        let value: UnsafeRawBufferPointer?
        let sequence: UInt64
        let log: UInt64
    }

    /// The versions. After ``sort()`` they are ordered by key ascending, then by sequence descending.
    private(set) var versions: ContiguousArray<Version> = []
    private(set) var gaps: [Gap] = []
    private var memories: [Memory] = []

    func add(_ entry: BatchScanner.Entry, sequence: UInt64, log: UInt64) {
        versions.append(Version(key: entry.key, value: entry.value, sequence: sequence, log: log))
    }

    /// Keeps the memory to which keys and values of versions point.
    func keep(_ memory: Memory) { memories.append(memory) }

    func add(_ gap: Gap) { gaps.append(gap) }

    func sort() {
        versions.sort { left, right in
            let order = ByteOrder.compare(left.key, right.key)
            return order != 0 ? order < 0 : left.sequence > right.sequence
        }
        gaps.sort { KeyRange.isLess($0.range.lower, $1.range.lower) }
    }
}
