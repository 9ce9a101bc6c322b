import LarderEngine
import Synchronization

/// A position in the order of all notifications from the origins of this process.
public struct OriginMoment: Hashable, Sendable {
    let number: UInt64

    private static let last = Atomic<UInt64>(0)

    /// Returns the moment after all notifications so far. Call it in the code that receives the origin's notifications
    /// and its confirmations of writes, in the order of their arrival.
    public static func now() -> OriginMoment { OriginMoment(number: last.load(ordering: .acquiring)) }

    /// Returns a new moment, after all earlier ones.
    static func next() -> OriginMoment {
        OriginMoment(number: last.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue)
    }
}
