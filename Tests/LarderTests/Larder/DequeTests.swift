import LarderPlatform
import Testing

@Suite struct DequeTests {
    /// Compares the queue with an array, over enough operations that the queue compacts its storage.
    @Test func aQueueReturnsElementsInOrder() {
        var queue = Deque<Int>()
        var model: [Int] = []
        for number in 0..<5_000 {
            queue.append(number)
            model.append(number)
        }
        while !model.isEmpty {
            let number = model.removeFirst()
            if number % 7 == 0 { queue.pushFront(-1) }
            let popped = number % 7 == 0 ? [queue.popFirst(), queue.popFirst()] : [-1, queue.popFirst()]
            #expect(popped == [-1, number])
            if number % 1_000 == 0 {
                queue.removeAll { $0 % 3 == 0 }
                model.removeAll { $0 % 3 == 0 }
            }
            #expect(queue.first == model.first && queue.count == model.count && queue.isEmpty == model.isEmpty)
        }
        let last = queue.popFirst()
        #expect(last == nil)
    }

    @Test func takeAllEmptiesTheQueue() {
        var queue = Deque([1, 2, 3])
        _ = queue.popFirst()
        queue.append(4)
        #expect(Array(queue) == [2, 3, 4])
        let taken = queue.takeAll()
        #expect(taken == [2, 3, 4])
        #expect(queue.isEmpty && queue.first == nil)
    }

    @Test func removeFindsElementsByIdentity() {
        final class Element {}
        let elements = (0..<3).map { _ in Element() }
        var queue = Deque(elements)
        _ = queue.popFirst()
        let removed = [0, 1, 1].map { queue.remove(elements[$0]) }
        #expect(removed == [false, true, false])
        #expect(queue.first === elements[2] && queue.count == 1)
    }

    @Test func smallByteArraysAreJoined() {
        var queue = Deque<[UInt8]>()
        queue.appendBytes([1])
        queue.appendBytes([2, 3])
        #expect(Array(queue) == [[1, 2, 3]])
        queue.appendBytes([UInt8](repeating: 0, count: 65_536))
        #expect(queue.count == 2)
    }
}
