import Synchronization

/// The parts of an origin and how long each is trusted, and the epochs of a cluster's slots. Any thread reads it
/// without a lock; the origin's thread writes it.
///
/// `@unchecked Sendable`: the memory is fixed, and its fields are atomic.
final class OriginParts: @unchecked Sendable {
    private struct Part: ~Copyable {
        let epoch = Atomic<UInt32>(1)
        /// The end of trust, in nanoseconds of the monotonic clock; 0 while the part is not trusted.
        let believedUntil = Atomic<Int64>(0)
    }

    /// A cluster has at most about a thousand servers.
    static let most = 2048
    /// The number of slots in a cluster.
    static let slotCount = 16_384

    private let parts: UnsafeMutablePointer<Part>
    /// One more than the highest number of a part that was ever trusted.
    private let count = Atomic<UInt32>(0)
    /// For each slot of a cluster, how often it may have changed its owner.
    private let slots: UnsafeMutablePointer<Atomic<UInt32>>

    init() {
        slots = .allocate(capacity: Self.slotCount)
        for slot in 0..<Self.slotCount { (slots + slot).initialize(to: Atomic(0)) }
        parts = .allocate(capacity: Self.most)
        for index in 0..<Self.most { (parts + index).initialize(to: Part()) }
    }

    deinit {
        parts.deinitialize(count: Self.most)
        parts.deallocate()
        slots.deinitialize(count: Self.slotCount)
        slots.deallocate()
    }

    func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool {
        guard stamp.part < UInt32(Self.most), Int(stamp.slot) < Self.slotCount else { return false }
        let part = parts + Int(stamp.part)
        // Read the time first: it is written after the epochs that end, so a reader that sees the new time also sees
        // the new epochs.
        guard now < part.pointee.believedUntil.load(ordering: .acquiring) else { return false }
        return part.pointee.epoch.load(ordering: .acquiring) == stamp.epoch
            && slots[Int(stamp.slot)].load(ordering: .acquiring) == stamp.slotEpoch
    }

    func epoch(_ part: UInt32) -> UInt32 { parts[Int(part)].epoch.load(ordering: .relaxed) }

    func believedUntil(_ part: UInt32) -> Int64 { parts[Int(part)].believedUntil.load(ordering: .relaxed) }

    /// Ends the part's epoch. The part is not trusted until ``believe(_:until:)``.
    func endEpoch(_ part: UInt32) {
        let entry = parts + Int(part)
        entry.pointee.believedUntil.store(0, ordering: .releasing)
        let next = entry.pointee.epoch.load(ordering: .relaxed) &+ 1
        entry.pointee.epoch.store(next == 0 ? 1 : next, ordering: .releasing)
    }

    func slotEpoch(_ slot: Int) -> UInt32 { slots[slot].load(ordering: .relaxed) }

    /// Ends the epoch of a slot, regardless of its owner.
    func endEpoch(ofSlot slot: Int) { slots[slot].wrappingAdd(1, ordering: .releasing) }

    func isAnyBelieved(now: Int64) -> Bool {
        (0..<Int(count.load(ordering: .acquiring))).contains {
            now < parts[$0].believedUntil.load(ordering: .acquiring)
        }
    }

    func believe(_ part: UInt32, until: Int64) {
        if part >= count.load(ordering: .relaxed) { count.store(part + 1, ordering: .releasing) }
        parts[Int(part)].believedUntil.store(until, ordering: .releasing)
    }
}
