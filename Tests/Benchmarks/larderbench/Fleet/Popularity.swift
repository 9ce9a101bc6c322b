import LarderPlatform

/// The probabilities with which keys are read and written, by rank. The first ranks are exact; later ones are in groups
/// whose members differ by less than one percent.
struct Popularity {
    struct Group: Equatable {
        /// The number of keys.
        var count: Double
        /// The probability that a read, or a write, is of a key of this group.
        var read: Double
        var write: Double
    }

    let groups: [Group]

    /// - Parameters:
    ///   - readExponent: the key of rank k is read with a probability proportional to k^-exponent.
    ///   - isExact: one group for each key, for tests.
    init(keys: Int, readExponent: Double, writeExponent: Double, isExact: Bool = false) {
        var groups: [Group] = []
        var first = 1
        while first <= keys {
            let size = isExact ? 1 : max(1, min(first / 128, keys - first + 1))
            groups.append(
                Group(
                    count: Double(size), read: Self.weight(first, size, readExponent) / Double(size),
                    write: Self.weight(first, size, writeExponent) / Double(size)))
            first += size
        }
        let (reads, writes) = groups.reduce((0.0, 0.0)) { ($0.0 + $1.count * $1.read, $0.1 + $1.count * $1.write) }
        self.groups = groups.map { Group(count: $0.count, read: $0.read / reads, write: $0.write / writes) }
    }

    /// The sum of k^-exponent over `size` ranks. Approximated by an integral whose ends are halfway between ranks,
    /// which is exact to the second order.
    private static func weight(_ first: Int, _ size: Int, _ exponent: Double) -> Double {
        guard size > 1 else { return pow(Double(first), -exponent) }
        let (low, high) = (Double(first) - 0.5, Double(first + size) - 0.5)
        if abs(exponent - 1) < 1e-9 { return log(high / low) }
        return (pow(high, 1 - exponent) - pow(low, 1 - exponent)) / (1 - exponent)
    }

    /// The sum over all keys.
    func sum(_ term: (Group) -> Double) -> Double { groups.reduce(0) { $0 + $1.count * term($1) } }
}
