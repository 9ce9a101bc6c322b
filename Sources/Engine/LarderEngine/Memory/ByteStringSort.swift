import LarderPlatform

/// Sorts byte strings. Compares the eight bytes after those with which all begin, which decides most comparisons.
struct ByteStringSort {
    private typealias Item = (word: UInt64, index: Int32)
    private var order: ContiguousArray<Item> = []

    /// The memory for each string, in bytes.
    static let itemBytes = MemoryLayout<(UInt64, Int32)>.stride

    /// The index of the string at a place of the order.
    subscript(place: Int) -> Int { Int(order[place].index) }

    /// - Parameter string: returns a string by its index.
    @inline(__always)
    mutating func sort(_ count: Int, _ string: (Int) -> UnsafeRawBufferPointer) {
        let shared = Self.sharedCount(count, string)
        order.removeAll(keepingCapacity: true)
        order.reserveCapacity(count)
        for index in 0..<count { order.append((Self.word(string(index), at: shared), Int32(index))) }
        order.sort { left, right in
            if left.word != right.word { return left.word < right.word }
            return ByteOrder.compare(string(Int(left.index)), string(Int(right.index))) < 0
        }
    }

    mutating func removeAll(keepingCapacity: Bool) { order.removeAll(keepingCapacity: keepingCapacity) }

    /// The number of bytes with which all strings begin.
    @inline(__always)
    private static func sharedCount(_ count: Int, _ string: (Int) -> UnsafeRawBufferPointer) -> Int {
        guard count > 0 else { return 0 }
        let first = string(0)
        var shared = first.count
        for index in 1..<max(1, count) {
            let other = string(index)
            shared = min(shared, other.count)
            if first.prefix(shared).elementsEqual(other.prefix(shared)) { continue }
            shared = zip(first, other).prefix(while: ==).reduce(0) { count, _ in count + 1 }
        }
        return shared
    }

    /// The eight bytes of a string from an offset on, big-endian; zeros follow its end.
    @inline(__always)
    private static func word(_ string: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
        if string.count >= offset + 8 {
            return UInt64(bigEndian: string.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        return (offset..<offset + 8).reduce(0) { $0 << 8 | UInt64($1 < string.count ? string[$1] : 0) }
    }
}
