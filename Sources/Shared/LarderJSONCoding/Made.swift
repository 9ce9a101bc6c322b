/// Estimates the memory, in bytes, that decoding allocates for a model in addition to its inline value. The decoder
/// adds up these upper bounds while it reads:
///
/// - For an array or dictionary that is decoded directly: its slots.
/// - For each value read from an unkeyed container: ``growth`` slots, in case the model collects the values in a set.
/// - For each value read from a keyed container, even an absent one: a slot, because the model may be a class.
/// - The contents of strings and data, and the headers of objects.
///
/// Other allocations in a model's `init(from:)` cannot be counted.
enum Made {
    /// The overhead of an allocation: that of the allocator, and the header of an object.
    static let objectBytes = 48
    /// The slot for a value of a simple type: a string, a number, a UUID or a Decimal.
    static let simpleBytes = 24
    /// The maximum number of slots for each element of a collection that grows while it is filled.
    static let growth = 3

    /// Returns the memory of an array with capacity for `count` elements.
    static func array(_ count: Int, stride: Int) -> Int { count > 0 ? objectBytes + count &* stride : 0 }

    /// Returns the memory of a dictionary with capacity for `count` fields. The number of its slots is a power of two,
    /// and at least a quarter of them are free.
    static func dictionary(_ count: Int, stride: Int) -> Int {
        guard count > 0 else { return 0 }
        var places = 2
        while places &* 3 < count &* 4 { places &*= 2 }
        return objectBytes + places &* (stride &+ 1)
    }

    /// Returns the memory of a string of `count` bytes. Up to 15 bytes are part of its inline value.
    static func text(_ count: Int) -> Int { count > 15 ? objectBytes + count : 0 }
}
