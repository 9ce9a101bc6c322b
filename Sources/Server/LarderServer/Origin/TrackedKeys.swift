import LarderEngine
import LarderOriginClients
import LarderPlatform

/// Tracks which cached entries are current at the origin. Each has a *mark*: when and how the entry was read.
///
/// A mark does not contain the value. A value gets no mark if the origin may have changed it after the read. An entry
/// without a mark is read again before it is served. Losing a mark therefore costs only one request, so the table has a
/// size limit, and removes the oldest marks.
///
/// Keys are identified by a 64-bit hash with a secret of this process. The probability that two of a million keys have
/// the same hash is less than 10⁻⁷.
///
/// `@unchecked Sendable`: each part has its own lock.
final class TrackedKeys: @unchecked Sendable {
    struct Mark {
        let stamp: OriginStamp
        /// If the origin has no value for the key: the time until which the key is assumed to be absent, in
        /// milliseconds since 1970. Nil if the key has a value.
        let absentUntil: Int64?
        /// The engine's count of rollbacks before the value was stored. If the count has changed since, a rollback may
        /// have removed the value.
        let rollbacks: UInt64
        /// When the request was sent, in nanoseconds of the monotonic clock.
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
        /// A ring buffer of the hashes, in the order in which their marks were added. The oldest hash is at `next`.
        var order: [Int] = []
        var next = 0
    }

    private let parts: [Part]
    private let partMax: Int
    private static let partCount = 16

    /// - Parameter most: the size limit in marks; rounded up to a multiple of 16.
    init(most: Int) {
        partMax = max(1, (most + Self.partCount - 1) / Self.partCount)
        parts = (0..<Self.partCount).map { _ in Part() }
    }

    var count: Int { parts.reduce(0) { sum, part in sum + part.lock.withLock { part.marks.count } } }

    /// Returns the part for a hash. Uses the highest bits of the hash, because the part's dictionary uses the lower
    /// bits.
    private func part(_ hash: Int) -> Part { parts[Int(UInt(bitPattern: hash) >> 60)] }

    func find(_ hash: Int) -> Mark? {
        let part = part(hash)
        return part.lock.withLock { part.marks[hash] }
    }

    func set(_ hash: Int, _ mark: Mark) {
        let part = part(hash)
        part.lock.withLock {
            var mark = mark
            if let previous = part.marks[hash] {
                mark.place = previous.place
            } else if part.order.count < partMax {
                mark.place = part.order.count
                part.order.append(hash)
            } else {
                mark.place = part.next
                let oldest = part.order[part.next]
                // The mark at this position may have been removed, and set again at another position.
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
