/// The first rows of a result in its order: a heap whose root is the last row that is kept.
package struct QueryRows<Content> {
    package struct Row {
        package let position: QueryPosition
        package let content: Content
        /// When the entry expires, in milliseconds since 1970; nil if it does not.
        package let expires: Int64?
    }

    private let order: QueryOrder
    /// The maximum number of rows.
    private let capacity: Int
    private var heap: [Row] = []
    /// Whether a row was left out because there were too many.
    package private(set) var isCut = false

    package init(_ order: QueryOrder, capacity: Int) { (self.order, self.capacity) = (order, capacity) }

    package var count: Int { heap.count }
    /// The last row of those that are kept.
    package var last: Row? { heap.first }
    package var isFull: Bool { heap.count >= capacity }

    /// Whether a row at this position would be kept. If not, more rows follow the result.
    package mutating func keeps(_ position: QueryPosition) -> Bool {
        guard isFull else { return true }
        isCut = true
        return heap.first.map { order.precedes(position, $0.position) } ?? false
    }

    /// Adds a row that ``keeps(_:)`` accepted.
    /// - Returns: the row that is no longer kept.
    @discardableResult package mutating func add(_ position: QueryPosition, _ content: Content, expires: Int64?) -> Row?
    {
        let row = Row(position: position, content: content, expires: expires)
        guard isFull else {
            heap.append(row)
            rise()
            return nil
        }
        let removed = heap[0]
        heap[0] = row
        sink()
        return removed
    }

    /// All rows in order.
    package func sorted() -> [Row] { heap.sorted { order.precedes($0.position, $1.position) } }

    private mutating func rise() {
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard order.precedes(heap[parent].position, heap[child].position) else { return }
            heap.swapAt(parent, child)
            child = parent
        }
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var last = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if order.precedes(heap[last].position, heap[child].position) { last = child }
            }
            guard last != parent else { return }
            heap.swapAt(parent, last)
            parent = last
        }
    }
}
