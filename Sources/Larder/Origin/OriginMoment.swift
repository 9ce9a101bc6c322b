import LarderEngine
import Synchronization

/// A moment in the order of everything that the origins of this process say.
public struct OriginMoment: Hashable, Sendable {
    let number: UInt64

    private static let last = Atomic<UInt64>(0)

    /// After everything that was said until now. To be taken where the origin's words arrive, in their order.
    public static func now() -> OriginMoment { OriginMoment(number: last.load(ordering: .acquiring)) }

    /// A moment that nothing else has.
    static func next() -> OriginMoment {
        OriginMoment(number: last.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue)
    }
}
