import LarderLevelDBFormat

/// A heap of the sources to merge, ordered by their positions (keys). Among sources at the same key, those without a
/// loaded version come first.
struct SourceHeap {
    private var sources: [any MergeSource] = []

    var top: (any MergeSource)? { sources.first }

    mutating func add(_ source: any MergeSource) {
        sources.append(source)
        var child = sources.count - 1
        while child > 0, Self.isBefore(sources[child], sources[(child - 1) / 2]) {
            sources.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Restores the order of the heap after the top source has moved. Removes the source if it is at its end.
    mutating func fix() {
        guard let top = sources.first else { return }
        if top.isAtEnd {
            sources[0] = sources[sources.count - 1]
            sources.removeLast()
        }
        var parent = 0
        while true {
            var first = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < sources.count {
                if Self.isBefore(sources[child], sources[first]) { first = child }
            }
            if first == parent { return }
            sources.swapAt(first, parent)
            parent = first
        }
    }

    /// Calls `body` with all sources at `key`, which must be the key of the top source. The parents of such a source
    /// are at this key too, so the search does not look below a source with another key.
    func forEachAtTop(_ key: UnsafeRawBufferPointer, _ body: (any MergeSource) -> Void) {
        visit(0, key, body)
    }

    private func visit(_ index: Int, _ key: UnsafeRawBufferPointer, _ body: (any MergeSource) -> Void) {
        guard index < sources.count, compare(sources[index].position, key) == 0 else { return }
        body(sources[index])
        visit(2 * index + 1, key, body)
        visit(2 * index + 2, key, body)
    }

    private static func isBefore(_ left: any MergeSource, _ right: any MergeSource) -> Bool {
        let order = compare(left.position, right.position)
        return order != 0 ? order < 0 : !left.isLoaded && right.isLoaded
    }
}
