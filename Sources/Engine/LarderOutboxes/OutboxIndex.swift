import LarderEngine
import LarderPlatform
import Synchronization

/// An in-memory list of the keys with pending writes, in the order of delivery. It lists the entries of the outbox's
/// companion database.
///
/// Thread-safe. `@unchecked Sendable`: `lock` guards the properties below "Guarded by `lock`". No other lock is taken
/// while it is held.
package final class OutboxIndex: @unchecked Sendable {
    /// Whether a write may have reached the origin in an earlier delivery attempt whose outcome is unknown.
    package enum Doubt: Equatable, Sendable {
        case none
        /// The origin may have executed the write. `over` identifies the state that the key had in the origin before
        /// the attempt; nil if unknown.
        case mayBeThere(over: String?)
    }

    /// A key whose pending write is due for delivery.
    package struct Turn: Sendable {
        package let key: [UInt8]
        /// The number of the pending write.
        package let number: UInt64
        package let doubt: Doubt
        /// The number of failed delivery attempts.
        package let failures: Int
    }

    private struct Item {
        var number: UInt64
        var acceptedAt: Int64
        var bytes: Int
        var doubt = Doubt.none
        var failures = 0
    }

    private struct Waiter {
        let keys: [[UInt8]]
        let until: Int64
        let then: @Sendable (Bool) -> Void
    }

    private typealias Place = (key: [UInt8], number: UInt64)

    package let most: Int
    private let held: HeldBytes
    /// The number of pending keys. It is atomic, so that readers need not lock if it is 0.
    private let count = Atomic<Int>(0)
    private let lock = Lock()
    private let isWoken = Condition()
    // Guarded by `lock`:
    private var items: [[UInt8]: Item] = [:]
    /// The queue of keys to deliver, in the order of their writes' numbers. If a key was written again, its earlier
    /// element is ignored.
    private var places = Deque<Place>()
    /// The keys to deliver before those in ``places``: they were put back, or their back-off is over. The last element
    /// is the next one.
    private var front: [Place] = []
    /// The keys that the last call of ``take(_:now:)`` returned; empty after ``endTurns()``.
    private var taken: [Place] = []
    /// The keys in a back-off (a delay after a failed attempt), and the end of each back-off in milliseconds of the
    /// monotonic clock. They are not in ``places`` or ``front``.
    private var rests: [[UInt8]: Int64] = [:]
    /// The keys by the end of their back-off, which is rounded up to a multiple of ``backoffStep`` so that there are
    /// few different times. A key may still be listed here after its back-off was cancelled.
    private var resting: [Int64: [[UInt8]]] = [:]
    private static let backoffStep: Int64 = 128
    private var next: UInt64 = 1
    private var waiters: [Waiter] = []
    private var isSealed = false
    private var hasNews = false
    private var isUrgent = false
    /// Whether the delivering thread pauses after a failure, so that new writes must not wake it.
    private var isResting = false
    private var hasRecovered = false

    /// - Parameters:
    ///   - most: the maximum number of pending keys.
    ///   - held: counts the bytes of all pending writes.
    package init(most: Int, held: HeldBytes) { (self.most, self.held) = (most, held) }

    deinit { held.add(-items.values.reduce(0) { $0 + $1.bytes }) }

    // MARK: Pending writes

    package var waiting: Int { count.load(ordering: .acquiring) }

    package func isWaiting(_ key: UnsafeRawBufferPointer) -> Bool {
        guard waiting > 0 else { return false }
        let key = Array(key)
        return lock.withLock { items[key] != nil }
    }

    package func number(_ key: [UInt8]) -> UInt64? { lock.withLock { items[key]?.number } }

    /// When the oldest pending write was accepted, in milliseconds since 1970.
    package var oldest: Int64? {
        lock.withLock {
            let next = places.first { items[$0.key]?.number == $0.number }
            let places = (taken + front + [next].compactMap(\.self)).filter { items[$0.key]?.number == $0.number }
            return (places.map(\.key) + rests.keys).compactMap { items[$0]?.acceptedAt }.min()
        }
    }

    /// Returns the reason why writes cannot be queued; nil if they can.
    /// - Parameters:
    ///   - bytes: the total length of the keys and values.
    ///   - limit: the name of the setting that determines ``most``, for the message.
    package func refusal(of keys: [[UInt8]], bytes: Int, limit: String) -> String? {
        guard held.hasRoom(for: bytes) else {
            return "the outboxes are full: pending writes may take \(held.most ?? 0) bytes, half of the disk "
                + "limit (max-disk)"
        }
        guard waiting + keys.count > most,
            lock.withLock({ items.count + keys.count { items[$0] == nil } > most })
        else { return nil }
        return "the outbox is full: \(most) keys are pending (\(limit))"
    }

    // MARK: New writes

    /// Adds writes that are being applied. The caller holds the locks of the keys' shards, so the numbers of a key's
    /// writes are in the order in which the writes are applied.
    /// - Parameters:
    ///   - bytes: the length of each write's key and value.
    ///   - now: the time when the writes were accepted, in milliseconds since 1970.
    /// - Returns: the number of the first write; those of the others follow it. Nil if the index is sealed: see
    ///   ``seal(_:)``.
    package func note(_ keys: [[UInt8]], bytes: [Int], now: Int64) -> UInt64? {
        lock.withLock {
            guard !isSealed else { return nil }
            let first = next
            for (key, bytes) in zip(keys, bytes) { add(key, bytes, now) }
            hasNews = true
            if !isResting { isWoken.signal() }
            return first
        }
    }

    private func add(_ key: [UInt8], _ bytes: Int, _ now: Int64) {
        let number = next
        next += 1
        rests[key] = nil
        held.add(bytes - (items[key]?.bytes ?? 0))
        items[key] = Item(number: number, acceptedAt: now, bytes: bytes)
        places.append((key, number))
        count.store(items.count, ordering: .releasing)
        if places.count > 1024 + 2 * items.count { places.removeAll { items[$0.key]?.number != $0.number } }
    }

    /// Adds the entries of the companion database. Keys that are already pending do not change.
    /// - Parameter entries: all entries, in any order.
    /// - Returns: the pending writes whose keys are not in `entries`.
    package func add(_ entries: [(key: [UInt8], number: UInt64, acceptedAt: Int64, bytes: Int)]) -> [Turn] {
        lock.withLock {
            let others = Set(items.keys).subtracting(entries.map(\.key)).compactMap(turn)
            for entry in entries where items[entry.key] == nil {
                held.add(entry.bytes)
                items[entry.key] = Item(number: entry.number, acceptedAt: entry.acceptedAt, bytes: entry.bytes)
                next = max(next, entry.number + 1)
            }
            let takenKeys = Set(taken.map(\.key))
            places = Deque(
                items.filter { rests[$0.key] == nil && !takenKeys.contains($0.key) }.map { ($0.key, $0.value.number) }
                    .sorted { $0.1 < $1.1 })
            front = []
            count.store(items.count, ordering: .releasing)
            wakeLocked()
            return others
        }
    }

    package func removeAll() {
        lock.withLock {
            held.add(-items.values.reduce(0) { $0 + $1.bytes })
            (items, places, front, taken, rests, resting) = ([:], Deque(), [], [], [:], [:])
            count.store(0, ordering: .releasing)
        }
        notifyWaiters(now: nil)
    }

    /// Makes the index refuse new writes (`true`) or accept them again.
    package func seal(_ isOn: Bool) { lock.withLock { isSealed = isOn } }

    // MARK: Delivery

    /// Removes and returns the next turns, in the order of their numbers. Keys that were put back, or whose back-off is
    /// over, come first.
    /// - Parameter now: the time in milliseconds of the monotonic clock.
    package func take(_ most: Int, now: Int64) -> [Turn] {
        lock.withLock {
            endRests(now)
            var turns: [Turn] = []
            var keys: Set<[UInt8]> = []
            while turns.count < most, let place = front.popLast() ?? places.popFirst() {
                guard let turn = turn(place.key), turn.number == place.number, rests[place.key] == nil else { continue }
                if keys.insert(place.key).inserted { turns.append(turn) }
            }
            taken = turns.map { ($0.key, $0.number) }
            return turns
        }
    }

    private func turn(_ key: [UInt8]) -> Turn? {
        items[key].map { Turn(key: key, number: $0.number, doubt: $0.doubt, failures: $0.failures) }
    }

    /// Called after the delivery of the turns that ``take(_:now:)`` returned has ended.
    package func endTurns() { lock.withLock { taken = [] } }

    /// Moves the keys whose back-off is over to the front of the queue.
    private func endRests(_ now: Int64) {
        let over = resting.keys.filter { $0 <= now }
        guard !over.isEmpty else { return }
        var due: [Place] = []
        for instant in over {
            for key in resting.removeValue(forKey: instant) ?? [] where rests[key] == instant {
                rests[key] = nil
                if let item = items[key] { due.append((key, item.number)) }
            }
        }
        front += due.sorted { $0.number > $1.number }
    }

    /// Puts turns back to the front of the queue.
    /// - Parameter failed: whether their delivery was attempted and failed.
    package func putBack(_ turns: [Turn], failed: Bool = false) {
        lock.withLock {
            front += turns.reversed().map { ($0.key, $0.number) }
            guard failed else { return }
            for turn in turns where items[turn.key]?.number == turn.number { items[turn.key]?.failures += 1 }
        }
    }

    /// Starts a key's back-off after a failed attempt. `until` is its end, in milliseconds of the monotonic clock.
    package func rest(_ turn: Turn, until: Int64) {
        lock.withLock {
            guard items[turn.key]?.number == turn.number else { return }
            items[turn.key]?.failures += 1
            let instant = (until / Self.backoffStep + 1) * Self.backoffStep
            rests[turn.key] = instant
            resting[instant, default: []].append(turn.key)
        }
    }

    /// Records whether a failed attempt may have reached the origin.
    package func note(_ turn: Turn, _ doubt: Doubt) {
        lock.withLock {
            if items[turn.key]?.number == turn.number { items[turn.key]?.doubt = doubt }
        }
    }

    /// Removes the pending write with this number. Does nothing if the key was written again, with another number.
    package func remove(_ key: [UInt8], _ number: UInt64) {
        lock.withLock {
            guard let item = items[key], item.number == number else { return }
            held.add(-item.bytes)
            items[key] = nil
            rests[key] = nil
            count.store(items.count, ordering: .releasing)
        }
    }

    // MARK: Waiting

    /// Calls `then` when none of the keys is pending any more.
    /// - Parameters:
    ///   - until: the time of the timeout, in milliseconds of the monotonic clock.
    ///   - then: called once, on any thread: with true when no key is pending, which may be during this call; with
    ///     false at the timeout.
    package func whenClear(_ keys: [[UInt8]], until: Int64, then: @escaping @Sendable (Bool) -> Void) {
        let isClear = lock.withLock { () -> Bool in
            if keys.allSatisfy({ items[$0] == nil }) { return true }
            waiters.append(Waiter(keys: keys, until: until, then: then))
            wakeLocked()
            return false
        }
        if isClear { then(true) }
    }

    /// Notifies waiters whose keys are no longer pending, and waiters that have timed out.
    /// - Parameter now: the current time, in milliseconds of the monotonic clock; with nil, no waiter times out.
    package func notifyWaiters(now: Int64?) {
        let (notified, late) = lock.withLock { () -> ([Waiter], [Waiter]) in
            guard !waiters.isEmpty else { return ([], []) }
            var (notified, late, left): ([Waiter], [Waiter], [Waiter]) = ([], [], [])
            for waiter in waiters {
                if waiter.keys.allSatisfy({ items[$0] == nil }) {
                    notified.append(waiter)
                } else if let now, waiter.until <= now {
                    late.append(waiter)
                } else {
                    left.append(waiter)
                }
            }
            waiters = left
            return (notified, late)
        }
        for waiter in notified { waiter.then(true) }
        for waiter in late { waiter.then(false) }
    }

    /// The time at which the delivering thread has work again if there are no new writes: when a back-off ends or a
    /// waiter times out. In milliseconds of the monotonic clock; `.min` if turns are due now.
    package var nextEvent: Int64 {
        lock.withLock {
            if !front.isEmpty || !places.isEmpty { return .min }
            return min(resting.keys.min() ?? .max, nextWaiterLocked)
        }
    }

    /// When the first waiter times out, in milliseconds of the monotonic clock; `.max` if there are no waiters.
    package var nextWaiter: Int64 { lock.withLock { nextWaiterLocked } }

    private var nextWaiterLocked: Int64 { waiters.lazy.map(\.until).min() ?? .max }

    // MARK: The delivering thread

    private func wakeLocked() {
        isUrgent = true
        isWoken.signal()
    }

    package func wake() { lock.withLock { wakeLocked() } }

    /// Reports that the origin responds again, and wakes the delivering thread, which then ends its pause. Back-offs of
    /// single keys continue.
    package func originRecovered() {
        lock.withLock {
            hasRecovered = true
            wakeLocked()
        }
    }

    /// Returns whether ``originRecovered()`` was called since the last call of this function.
    package func takeRecovery() -> Bool {
        lock.withLock { exchange(&hasRecovered, with: false) }
    }

    /// Waits for `milliseconds`, but at most a minute. Returns earlier after ``wake()`` or if there are new writes.
    /// Called by the delivering thread.
    /// - Parameter isResting: whether the wait continues if there are new writes.
    package func wait(milliseconds: Int64, isResting: Bool) {
        lock.withLock {
            self.isResting = isResting
            if !isUrgent, isResting || !hasNews, milliseconds > 0 {
                _ = isWoken.wait(lock, milliseconds: min(milliseconds, 60_000))
            }
            (hasNews, isUrgent, self.isResting) = (false, false, false)
        }
    }
}
