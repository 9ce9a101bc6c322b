/// The content of the logs: every readable put and delete, sorted, and the gaps.
final class LogContents {
    /// A version of a key. Its bytes are in one of `memories`.
    struct Version {
        let key: UnsafeRawBufferPointer
        /// nil if the version is a removal.
        let value: UnsafeRawBufferPointer?
        let sequence: UInt64
        let log: UInt64
    }

    /// Sorted by key ascending, then by sequence descending.
    private(set) var versions: ContiguousArray<Version> = []
    private(set) var gaps: [Gap] = []
    private var memories: [Memory] = []

    func add(_ entry: BatchEntry, sequence: UInt64, log: UInt64) {
        versions.append(Version(key: entry.key, value: entry.isPut ? entry.value : nil, sequence: sequence, log: log))
    }

    /// Keeps the memory that versions point to.
    func keep(_ memory: Memory) { memories.append(memory) }

    func add(_ gap: Gap) { gaps.append(gap) }

    func sort() {
        versions.sort { left, right in
            let order = compare(left.key, right.key)
            return order != 0 ? order < 0 : left.sequence > right.sequence
        }
        gaps.sort { KeyRange.isLess($0.range.lower, $1.range.lower) }
    }
}
