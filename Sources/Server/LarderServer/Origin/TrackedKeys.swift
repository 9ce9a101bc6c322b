import LarderEngine
import LarderOriginClients
import LarderPlatform

/// Which entries are known to be what the origin has: a *mark* for each, with the stamp under which it was read.
///
/// A mark says nothing of the value: that is the larder's. Whoever stores a value that the origin may have changed since
/// sets no mark, and an entry without a mark is asked for again. So a mark that is lost costs a question, and the table may
/// lose any: it is bounded, and when it is full the oldest go.
///
/// Keys are known by 64 bits of a hash with a secret of this process: a million marks are mistaken for each other's with a
/// probability of 10⁻⁷.
///
/// Thread-safe. The proof for `@unchecked Sendable`: a part is read and written with its lock held.
final class TrackedKeys: @unchecked Sendable {
    struct Mark {
        let stamp: OriginStamp
        /// For an absent entry: until when that is believed, in milliseconds since 1970. Nil for an entry that is there.
        let absentUntil: Int64?
        /// The engine's count of rollbacks before the value was stored: after another one it may be gone again.
        let rollbacks: UInt64
        /// When the origin was asked, in nanoseconds of the monotonic clock.
        let sentAt: Int64
        fileprivate var place = 0

        init(stamp: OriginStamp, absentUntil: Int64?, rollbacks: UInt64, sentAt: Int64) {
            self.sentAt = sentAt
            self.stamp = stamp
            self.absentUntil = absentUntil
            self.rollbacks = rollbacks
        }
    }

    private final class Part {
        let lock = Lock()
        var marks: [Int: Mark] = [:]
        /// The hashes in the order of their marks, as a ring.
        var order: [Int] = []
        var next = 0
    }

    private let parts: [Part]
    private let partMax: Int
    private static let partCount = 16

    /// - Parameter most: how many marks; rounded up to a multiple of 16.
    init(most: Int) {
        partMax = max(1, (most + Self.partCount - 1) / Self.partCount)
        parts = (0..<Self.partCount).map { _ in Part() }
    }

    var count: Int { parts.reduce(0) { sum, part in sum + part.lock.withLock { part.marks.count } } }

    /// The highest bits: the dictionary of a part uses the others.
    private func part(_ hash: Int) -> Part { parts[Int(UInt(bitPattern: hash) >> 60)] }

    func find(_ hash: Int) -> Mark? {
        let part = part(hash)
        return part.lock.withLock { part.marks[hash] }
    }

    func set(_ hash: Int, _ mark: Mark) {
        let part = part(hash)
        part.lock.withLock {
            var mark = mark
            if let former = part.marks[hash] {
                mark.place = former.place
            } else if part.order.count < partMax {
                mark.place = part.order.count
                part.order.append(hash)
            } else {
                mark.place = part.next
                let oldest = part.order[part.next]
                // Its mark may have gone before, and been set again elsewhere.
                if part.marks[oldest]?.place == part.next { part.marks[oldest] = nil }
                part.order[part.next] = hash
                part.next = (part.next + 1) % partMax
            }
            part.marks[hash] = mark
        }
    }

    func remove(_ hash: Int) {
        let part = part(hash)
        part.lock.withLock { part.marks[hash] = nil }
    }

    func removeAll() {
        for part in parts {
            part.lock.withLock {
                part.marks = [:]
                part.order = []
                part.next = 0
            }
        }
    }
}
