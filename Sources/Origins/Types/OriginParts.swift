import Synchronization

/// The parts of an origin and until when each is believed. Any thread reads it without a lock; the origin's thread
/// writes it.
///
/// The proof for `@unchecked Sendable`: the memory is fixed, and its fields are atomic.
final class OriginParts: @unchecked Sendable {
    private struct Part: ~Copyable {
        let epoch = Atomic<UInt32>(1)
        /// In nanoseconds of the monotonic clock; 0 for not now.
        let believedUntil = Atomic<Int64>(0)
    }

    /// A cluster has at most about a thousand servers.
    static let most = 2048

    private let parts: UnsafeMutablePointer<Part>

    init() {
        parts = .allocate(capacity: Self.most)
        for index in 0..<Self.most { (parts + index).initialize(to: Part()) }
    }

    deinit {
        parts.deinitialize(count: Self.most)
        parts.deallocate()
    }

    func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool {
        guard stamp.part < UInt32(Self.most) else { return false }
        let part = parts + Int(stamp.part)
        // In this order: the instant of a later epoch is written behind that epoch, so whoever sees it sees the epoch.
        guard now < part.pointee.believedUntil.load(ordering: .acquiring) else { return false }
        return part.pointee.epoch.load(ordering: .acquiring) == stamp.epoch
    }

    func epoch(_ part: UInt32) -> UInt32 { parts[Int(part)].epoch.load(ordering: .relaxed) }

    func believedUntil(_ part: UInt32) -> Int64 { parts[Int(part)].believedUntil.load(ordering: .relaxed) }

    /// Ends the part's epoch. It is not believed until ``believe(_:until:)``.
    func endEpoch(_ part: UInt32) {
        let entry = parts + Int(part)
        entry.pointee.believedUntil.store(0, ordering: .releasing)
        let next = entry.pointee.epoch.load(ordering: .relaxed) &+ 1
        entry.pointee.epoch.store(next == 0 ? 1 : next, ordering: .releasing)
    }

    func believe(_ part: UInt32, until: Int64) {
        parts[Int(part)].believedUntil.store(until, ordering: .releasing)
    }
}
