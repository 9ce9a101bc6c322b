import LarderPlatform

/// Sorts byte strings. Compares the eight bytes after those with which all begin. Strings for which these are equal are
/// then sorted by the bytes that follow, in the same way: reading each string once is faster than comparing strings.
struct ByteStringSort {
    private typealias Item = (word: UInt64, index: Int32)
    private var order: ContiguousArray<Item> = []

    /// The memory for each string, in bytes.
    static let itemBytes = MemoryLayout<(UInt64, Int32)>.stride

    /// The index of the string at a place of the order.
    subscript(place: Int) -> Int { Int(order[place].index) }

    /// The least number of strings that are sorted by their words, instead of being compared.
    private static let wordsMin = 5

    /// - Parameter string: returns a string by its index.
    mutating func sort(_ count: Int, _ string: (Int) -> UnsafeRawBufferPointer) {
        order.removeAll(keepingCapacity: true)
        order.reserveCapacity(count)
        for index in 0..<count { order.append((0, Int32(index))) }
        order.withUnsafeMutableBufferPointer { Self.sort($0, from: 0, levels: 8, string) }
    }

    /// Sorts strings that begin with the same `start` bytes.
    /// - Parameter levels: how often strings with equal words may be sorted by the next words. Limits the recursion.
    private static func sort(
        _ items: UnsafeMutableBufferPointer<Item>, from start: Int, levels: Int,
        _ string: (Int) -> UnsafeRawBufferPointer
    ) {
        var items = items
        let shared = sharedCount(items, from: start, string)
        for place in items.indices { items[place].word = word(string(Int(items[place].index)), at: shared) }
        items.sort { $0.word < $1.word }
        var first = 0
        while first < items.count {
            let word = items[first].word
            let end = items[first...].firstIndex { $0.word != word } ?? items.count
            var equal = UnsafeMutableBufferPointer(rebasing: items[first..<end])
            first = end
            if equal.count == 1 { continue }
            if equal.count >= wordsMin, levels > 0,
                equal.allSatisfy({ string(Int($0.index)).count >= shared + wordBytes })
            {
                sort(equal, from: shared + wordBytes, levels: levels - 1, string)
            } else {
                equal.sort { ByteOrder.compare(string(Int($0.index)), string(Int($1.index))) < 0 }
            }
        }
    }

    mutating func removeAll(keepingCapacity: Bool) { order.removeAll(keepingCapacity: keepingCapacity) }

    /// The number of bytes with which all strings begin, if they begin with the same `start` bytes.
    private static func sharedCount(
        _ items: UnsafeMutableBufferPointer<Item>, from start: Int, _ string: (Int) -> UnsafeRawBufferPointer
    ) -> Int {
        guard let first = items.first.map({ string(Int($0.index)) }) else { return 0 }
        var shared = first.count
        for item in items.dropFirst() {
            let other = string(Int(item.index))
            shared = min(shared, other.count)
            if first[start..<shared].elementsEqual(other[start..<shared]) { continue }
            shared = start + zip(first[start...], other[start...]).prefix(while: ==).reduce(0) { count, _ in count + 1 }
        }
        return shared
    }

    private static let wordBytes = 8

    /// The eight bytes of a string from an offset on, big-endian; zeros follow its end.
    @inline(__always)
    private static func word(_ string: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
        if string.count >= offset + 8 {
            return UInt64(bigEndian: string.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        return (offset..<offset + 8).reduce(0) { $0 << 8 | UInt64($1 < string.count ? string[$1] : 0) }
    }
}
