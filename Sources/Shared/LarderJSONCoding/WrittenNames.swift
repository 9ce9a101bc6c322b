/// The names of the fields that were written to an object so far, to detect a repeated name.
///
/// Up to ``fewMax`` names are stored as ranges of the text. A new name is compared with them only if a 64-bit filter
/// shows that it may be a repetition. For more names, a set of strings is used instead. The set is also used for names
/// that are escaped or not ASCII, because Swift may consider two such names equal although their bytes differ.
struct WrittenNames {
    private static let fewMax = 24

    private var filter: UInt64 = 0
    /// The range of each name in the text, without its quotes.
    private var ranges: [(start: Int, end: Int)] = []
    private var all: Set<String> = []
    private var order: [String] = []

    mutating func removeAll() {
        filter = 0
        ranges.removeAll(keepingCapacity: true)
        if !order.isEmpty {
            all = []
            order = []
        }
    }

    /// - Returns: false if the object already has a field with this name.
    mutating func insert(_ name: String, start: Int, end: Int, in text: UnsafeRawBufferPointer) -> Bool {
        guard order.isEmpty, ranges.count < Self.fewMax, Self.isPlain(text, start, end, name) else {
            return insertAmongAll(name, in: text)
        }
        func written(_ start: Int, _ end: Int) -> UnsafeBufferPointer<UInt8> {
            UnsafeRawBufferPointer(rebasing: text[start..<end]).assumingMemoryBound(to: UInt8.self)
        }
        let bytes = written(start, end)
        let bit = bytes.filterBit
        if filter & bit != 0 {
            for range in ranges where written(range.start, range.end).isEqual(to: bytes) { return false }
        }
        filter |= bit
        ranges.append((start, end))
        return true
    }

    mutating func removeLast() {
        if let name = order.popLast() {
            all.remove(name)
        } else {
            // The name's bit stays in the filter. That may only cause an unnecessary comparison.
            _ = ranges.popLast()
        }
    }

    private mutating func insertAmongAll(_ name: String, in text: UnsafeRawBufferPointer) -> Bool {
        for range in ranges {
            let plain = String(decoding: text[range.start..<range.end], as: UTF8.self)
            all.insert(plain)
            order.append(plain)
        }
        ranges.removeAll(keepingCapacity: true)
        guard all.insert(name).inserted else { return false }
        order.append(name)
        return true
    }

    /// Whether the name is ASCII and was written without escapes.
    private static func isPlain(_ text: UnsafeRawBufferPointer, _ start: Int, _ end: Int, _ name: String) -> Bool {
        guard name.utf8.count == end - start else { return false }
        var bits: UInt8 = 0
        for index in start..<end { bits |= text[index] }
        return bits < 0x80
    }
}

// The bytes of a name.
extension UnsafeBufferPointer<UInt8> {
    /// One bit of a filter, the same for equal names.
    @inline(__always) var filterBit: UInt64 {
        var hash = UInt64(truncatingIfNeeded: count)
        if count > 0 {
            hash = hash &* 31 &+ UInt64(self[0])
            hash = hash &* 31 &+ UInt64(self[count &- 1])
            hash = hash &* 31 &+ UInt64(self[count / 2])
        }
        return 1 << ((hash &* 0x9E37_79B9_7F4A_7C15) >> 58)
    }

    @inline(__always) func isEqual(to other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count else { return false }
        var index = 0
        while index &+ 8 <= count {
            let left = UnsafeRawPointer(baseAddress.unsafelyUnwrapped + index).loadUnaligned(as: UInt64.self)
            let right = UnsafeRawPointer(other.baseAddress.unsafelyUnwrapped + index).loadUnaligned(as: UInt64.self)
            if left != right { return false }
            index &+= 8
        }
        while index < count {
            if self[index] != other[index] { return false }
            index &+= 1
        }
        return true
    }
}
