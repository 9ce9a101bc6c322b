/// A first-in, first-out queue. Each operation takes amortized constant time.
struct Fifo<Element> {
    private var items: [Element?] = []
    private var head = 0

    var count: Int { items.count - head }
    var isEmpty: Bool { count == 0 }
    var first: Element? { head < items.count ? items[head] : nil }

    mutating func append(_ item: Element) { items.append(item) }

    mutating func popFirst() -> Element? {
        guard head < items.count else { return nil }
        defer {
            items[head] = nil
            head += 1
            if head == items.count {
                items.removeAll(keepingCapacity: head <= 4096)
                head = 0
            } else if head >= 1024, head * 2 >= items.count {
                items.removeFirst(head)
                head = 0
            }
        }
        return items[head]
    }

    /// Changes the first element in place, and returns the result of `body`; nil if the queue is empty.
    mutating func changeFirst<Result>(_ body: (inout Element) -> Result) -> Result? {
        guard head < items.count, var item = items[head] else { return nil }
        items[head] = nil
        defer { items[head] = item }
        return body(&item)
    }

    /// Removes and returns all elements, in order.
    mutating func takeAll() -> [Element] {
        defer {
            items = []
            head = 0
        }
        return items[head...].compactMap { $0 }
    }
}
