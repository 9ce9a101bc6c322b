/// A queue in an array: appending and removing the first element take constant time on average. A value type.
struct Deque<Element> {
    private var storage: [Element?] = []
    private var head = 0

    var count: Int { storage.count - head }
    var isEmpty: Bool { storage.count == head }

    /// The elements in their order.
    var elements: [Element] { storage[head...].compactMap { $0 } }

    mutating func append(_ element: Element) { storage.append(element) }

    var first: Element? { isEmpty ? nil : storage[head] }

    mutating func popFirst() -> Element? {
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

    /// Reinserts the element that was removed last.
    mutating func pushFront(_ element: Element) {
        if head > 0 {
            head -= 1
            storage[head] = element
        } else {
            storage.insert(element, at: 0)
        }
    }

    mutating func removeAll() {
        storage = []
        head = 0
    }

    mutating func removeAll(where isOut: (Element) -> Bool) {
        storage = storage[head...].filter { $0.map { !isOut($0) } ?? false }
        head = 0
    }
}

extension Deque where Element == [UInt8] {
    /// Appends bytes. Small arrays are appended to the last element, so that one system call sends many requests. Large
    /// arrays become new elements, without copying.
    mutating func appendBytes(_ bytes: [UInt8]) {
        let last = storage.count - 1
        if last >= head, let room = storage[last]?.count, room + bytes.count <= 65_536 {
            storage[last]?.append(contentsOf: bytes)
        } else {
            append(bytes)
        }
    }
}
