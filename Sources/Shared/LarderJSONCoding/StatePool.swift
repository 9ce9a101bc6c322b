import Synchronization

/// Keeps up to four objects for reuse, because creating one costs more than using it. Further objects are freed.
///
/// Thread-safe: atomic operations fill and empty a slot, so an object is either in one slot or used by one caller.
struct StatePool<State: AnyObject>: ~Copyable, Sendable {
    private let places: (Place, Place, Place, Place)

    private final class Place: Sendable {
        /// The address of a retained `State`, or 0 if the slot is empty. The caller that takes the address by an atomic
        /// exchange owns the reference.
        let address = Atomic<UInt>(0)
    }

    init() { places = (Place(), Place(), Place(), Place()) }

    func take() -> State? { take(places.0) ?? take(places.1) ?? take(places.2) ?? take(places.3) }

    private func take(_ place: Place) -> State? {
        guard place.address.load(ordering: .relaxed) != 0,
            let pointer = UnsafeRawPointer(bitPattern: place.address.exchange(0, ordering: .acquiring))
        else { return nil }
        return Unmanaged<State>.fromOpaque(pointer).takeRetainedValue()
    }

    func put(_ state: State) {
        let pointer = Unmanaged.passRetained(state).toOpaque()
        if put(pointer, places.0) || put(pointer, places.1) || put(pointer, places.2) || put(pointer, places.3) {
            return
        }
        Unmanaged<State>.fromOpaque(pointer).release()
    }

    private func put(_ pointer: UnsafeMutableRawPointer, _ place: Place) -> Bool {
        place.address.compareExchange(expected: 0, desired: UInt(bitPattern: pointer), ordering: .releasing).exchanged
    }
}
