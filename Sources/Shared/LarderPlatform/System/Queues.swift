/// A queue in an array: appending and removing the first element take constant time on average. A value type.
@usableFromInline package struct Deque<Element> {
    /// The elements from index `head` on. The elements before it are nil.
    @usableFromInline var storage: [Element?]
    @usableFromInline var head = 0

    @inlinable package init() { storage = [] }
    @inlinable package init(_ elements: [Element]) { storage = elements }

    @inlinable package var count: Int { storage.count - head }
    @inlinable package var isEmpty: Bool { storage.count == head }
    @inlinable package var first: Element? { isEmpty ? nil : storage[head] }

    @inlinable package mutating func append(_ element: Element) { storage.append(element) }

    @inlinable package mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = storage[head]
        storage[head] = nil
        head += 1
        if head == storage.count {
            storage.removeAll(keepingCapacity: storage.count <= 4096)
            head = 0
        } else if head >= 1024, head * 2 >= storage.count {
            storage.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Inserts an element before the others. Takes constant time after a call of ``popFirst()``.
    @inlinable package mutating func pushFront(_ element: Element) {
        if head > 0 {
            head -= 1
            storage[head] = element
        } else {
            storage.insert(element, at: 0)
        }
    }

    /// Removes and returns all elements, in order.
    @discardableResult
    @inlinable package mutating func takeAll() -> [Element] {
        defer { self = Deque() }
        return Array(self)
    }

    @inlinable package mutating func removeAll(where isOut: (Element) -> Bool) {
        storage = storage[head...].filter { $0.map { !isOut($0) } ?? false }
        head = 0
    }
}

extension Deque: Sequence {
    @inlinable package func makeIterator() -> some IteratorProtocol<Element> {
        storage[head...].lazy.compactMap { $0 }.makeIterator()
    }
}

extension Deque where Element: AnyObject {
    /// Removes an element. Takes time in proportion to the number of elements.
    /// - Returns: whether the queue contained it.
    @inlinable package mutating func remove(_ element: Element) -> Bool {
        guard let index = storage[head...].firstIndex(where: { $0 === element }) else { return false }
        storage.remove(at: index)
        return true
    }
}

extension Deque where Element == [UInt8] {
    /// Appends bytes. Small arrays are appended to the last element, so that one system call sends many requests. Large
    /// arrays become new elements, without copying.
    @inlinable package mutating func appendBytes(_ bytes: [UInt8]) {
        let last = storage.count - 1
        if last >= head, let room = storage[last]?.count, room + bytes.count <= 65_536 {
            storage[last]?.append(contentsOf: bytes)
        } else {
            append(bytes)
        }
    }
}

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
