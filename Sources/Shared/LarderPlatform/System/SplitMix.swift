/// A small random number generator, not for secrets: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom
/// Number Generators", OOPSLA 2014). A seed always gives the same numbers.
///
/// Swift's own generator asks the kernel for each number, which costs as much as reading an entry.
package struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    /// The difference between the states of two numbers that follow each other.
    package static let step: UInt64 = 0x9E37_79B9_7F4A_7C15

    package init(seed: UInt64) { state = seed }

    /// Creates a generator with a random seed.
    package init() { self.init(seed: .random(in: .min ... .max)) }

    package mutating func next() -> UInt64 {
        state &+= Self.step
        return Self.number(of: state)
    }

    /// Returns the first number of a seed: a hash of it.
    package static func first(of seed: UInt64) -> UInt64 { number(of: seed &+ step) }

    /// Returns the number of a state. For generators that keep their state elsewhere.
    package static func number(of state: UInt64) -> UInt64 {
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
