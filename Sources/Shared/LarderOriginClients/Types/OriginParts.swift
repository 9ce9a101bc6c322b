import Synchronization

/// The epoch of each part (server) of an origin, and until when it is trusted. In a cluster, also the epochs of slots.
/// Only the origin's thread changes these values; all threads can read them without a lock.
///
/// `@unchecked Sendable`: the memory is allocated once, and its fields are atomic.
final class OriginParts: @unchecked Sendable {
    private struct Part: ~Copyable {
        let epoch = Atomic<UInt32>(1)
        /// Until when the part is trusted, in nanoseconds of the monotonic clock; 0 if it is not trusted.
        let trustedUntil = Atomic<Int64>(0)
    }

    /// The maximum number of parts. A cluster has at most about a thousand servers.
    static let most = 2048
    static let slotCount = 16_384

    private let parts: UnsafeMutablePointer<Part>
    /// All parts that were ever trusted have lower numbers than this.
    private let count = Atomic<UInt32>(0)
    /// For each slot of a cluster, its epoch: how many times its owner may have changed.
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
        // Load the time before the epochs. When a part is trusted again, its time is stored after the new epoch. So a
        // thread that sees the new time also sees the new epoch.
        guard now < part.pointee.trustedUntil.load(ordering: .acquiring) else { return false }
        return part.pointee.epoch.load(ordering: .acquiring) == stamp.epoch
            && slots[Int(stamp.slot)].load(ordering: .acquiring) == stamp.slotEpoch
    }

    func epoch(_ part: UInt32) -> UInt32 { parts[Int(part)].epoch.load(ordering: .relaxed) }

    func trustedUntil(_ part: UInt32) -> Int64 { parts[Int(part)].trustedUntil.load(ordering: .relaxed) }

    /// Ends the epoch of a part. The part is not trusted until ``trust(_:until:)`` is called.
    func endEpoch(_ part: UInt32) {
        let entry = parts + Int(part)
        entry.pointee.trustedUntil.store(0, ordering: .releasing)
        let next = entry.pointee.epoch.load(ordering: .relaxed) &+ 1
        entry.pointee.epoch.store(next == 0 ? 1 : next, ordering: .releasing)
    }

    func slotEpoch(_ slot: Int) -> UInt32 { slots[slot].load(ordering: .relaxed) }

    func endEpoch(ofSlot slot: Int) { slots[slot].wrappingAdd(1, ordering: .releasing) }

    func isAnyTrusted(now: Int64) -> Bool {
        (0..<Int(count.load(ordering: .acquiring))).contains {
            now < parts[$0].trustedUntil.load(ordering: .acquiring)
        }
    }

    func trust(_ part: UInt32, until: Int64) {
        if part >= count.load(ordering: .relaxed) { count.store(part + 1, ordering: .releasing) }
        parts[Int(part)].trustedUntil.store(until, ordering: .releasing)
    }
}
