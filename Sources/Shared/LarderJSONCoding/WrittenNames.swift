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
        let bit = Self.filterBit(text, start, end)
        if filter & bit != 0 {
            for range in ranges where Self.areEqual(text, range.start, range.end, start, end) { return false }
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

    private static func filterBit(_ text: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> UInt64 {
        var hash = UInt64(truncatingIfNeeded: end - start)
        if end > start {
            hash = hash &* 31 &+ UInt64(text[start])
            hash = hash &* 31 &+ UInt64(text[end &- 1])
            hash = hash &* 31 &+ UInt64(text[start &+ (end &- start) / 2])
        }
        return 1 << ((hash &* 0x9E37_79B9_7F4A_7C15) >> 58)
    }

    private static func areEqual(
        _ text: UnsafeRawBufferPointer, _ start: Int, _ end: Int, _ otherStart: Int, _ otherEnd: Int
    ) -> Bool {
        guard end - start == otherEnd - otherStart else { return false }
        for offset in 0..<(end - start) where text[start + offset] != text[otherStart + offset] { return false }
        return true
    }
}
