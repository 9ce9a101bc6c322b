import LarderJSONCoding
import LarderPlatform

/// The first rows of a result in its order.
package struct QueryRows {
    package struct Row {
        package let position: QueryPosition
        package let content: [[UInt8]?]
        /// When the entry expires, in milliseconds since 1970; nil if it does not.
        package let expires: Int64?
    }

    private let order: QueryOrder
    /// The maximum number of rows.
    private let capacity: Int
    /// In order, or a heap whose root is the last row that is kept.
    private var rows: [Row] = []
    private var isHeap = false
    /// Whether a row was left out because there were too many.
    package private(set) var isCut = false

    package init(_ order: QueryOrder, capacity: Int) {
        (self.order, self.capacity) = (order, capacity)
        rows.reserveCapacity(min(capacity, 16))
    }

    package var count: Int { rows.count }
    /// The last row of those that are kept.
    package var last: Row? { isHeap ? rows.first : rows.last }
    package var isFull: Bool { rows.count >= capacity }

    /// Whether the row of a document follows the kept ones, and there are enough of them.
    package mutating func leavesOut(_ document: borrowing JSONDocument, _ facts: QueryFacts) -> Bool {
        guard isFull, let last = last?.position, order.follows(last, document, facts) else { return false }
        isCut = true
        return true
    }

    /// Whether a row at this position would be kept. If not, more rows follow the result.
    package mutating func keeps(_ position: QueryPosition) -> Bool {
        guard isFull else { return true }
        isCut = true
        return last.map { order.precedes(position, $0.position) } ?? false
    }

    /// Adds a row that ``keeps(_:)`` accepted.
    /// - Returns: the row that is no longer kept.
    @discardableResult
    package mutating func add(_ position: QueryPosition, _ content: [[UInt8]?], expires: Int64?) -> Row? {
        let row = Row(position: position, content: content, expires: expires)
        let isNext = !isFull && !isHeap && rows.last.map { order.precedes($0.position, position) } ?? true
        if isNext {
            rows.append(row)
            return nil
        }
        if !isHeap { rows.reverse() }
        isHeap = true
        guard isFull else {
            rows.append(row)
            rows.raiseLast { [order] in order.precedes($1.position, $0.position) }
            return nil
        }
        let removed = rows[0]
        rows[0] = row
        rows.lowerFirst { [order] in order.precedes($1.position, $0.position) }
        return removed
    }

    package func sorted() -> [Row] { isHeap ? rows.sorted { order.precedes($0.position, $1.position) } : rows }
}
