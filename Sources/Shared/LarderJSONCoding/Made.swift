/// The memory that decoding takes, in bytes: an upper bound, counted while reading, of a model's memory outside of its
/// own inline form.
///
/// - Arrays and dictionaries that are read directly: their slots.
/// - Everything that a model reads from an unkeyed container: its slot in a set that has just grown.
/// - Everything that a model reads from a keyed container: its slot in an object, or in the payload of an indirect
///   case, even if the field is absent.
/// - Texts and data; objects themselves.
///
/// Further allocations of a model's `init(from:)` cannot be counted.
enum Made {
    /// The allocator's overhead, and the header of an object.
    static let objectBytes = 48
    /// The slot of a simple type: a text, a number, a UUID, a Decimal.
    static let simpleBytes = 24
    /// The maximum number of slots for each element of a growing collection.
    static let growth = 3

    /// The memory of an array with capacity for `count` elements.
    static func array(_ count: Int, stride: Int) -> Int { count > 0 ? objectBytes + count &* stride : 0 }

    /// The memory of a dictionary with capacity for `count` fields: its table has a power of two of slots, a quarter of
    /// them free.
    static func dictionary(_ count: Int, stride: Int) -> Int {
        guard count > 0 else { return 0 }
        var places = 2
        while places &* 3 < count &* 4 { places &*= 2 }
        return objectBytes + places &* (stride &+ 1)
    }

    /// The memory of a text of `count` bytes: up to 15 are part of its inline form.
    static func text(_ count: Int) -> Int { count > 15 ? objectBytes + count : 0 }
}
