/// Arrays as binary heaps, whose first element precedes all others.
extension Array {
    /// Restores the order of the heap after an element was appended.
    @inlinable package mutating func raiseLast(_ precedes: (Element, Element) -> Bool) {
        var child = count - 1
        while child > 0, precedes(self[child], self[(child - 1) / 2]) {
            swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Restores the order of the heap after its first element was replaced or has changed.
    @inlinable package mutating func lowerFirst(_ precedes: (Element, Element) -> Bool) {
        var parent = 0
        while true {
            var first = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < count && precedes(self[child], self[first]) {
                first = child
            }
            if first == parent { return }
            swapAt(parent, first)
            parent = first
        }
    }
}
