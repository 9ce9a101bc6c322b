import LarderEngine
import LarderPlatform
import Synchronization

/// The number of entries in each database, for INFO. A thread counts the entries, because INFO must not read millions
/// of them.
///
/// `@unchecked Sendable`: the table is guarded by `lock`.
final class EntryCounts: @unchecked Sendable {
    /// The values that INFO shows for a database.
    struct Count: Equatable {
        /// The number of fresh entries.
        var entries = 0
        /// The number of entries with a deadline.
        var expiring = 0
        /// The average remaining lifetime, in milliseconds.
        var averageLife: Int64 = 0
        /// The number of expired entries that are kept because they may still be served as stale.
        var stale = 0
    }

    /// A count, its start by the monotonic clock, and its duration in nanoseconds.
    private typealias Known = (count: Count?, begun: Int64, cost: Int64)

    /// If a count took longer than `cheapNanoseconds`, it is not repeated until its result is older than
    /// `staleNanoseconds`.
    private static let cheapNanoseconds: Int64 = 20_000_000
    private static let staleNanoseconds: Int64 = 60_000_000_000
    /// The time between the starts of two counts is at least this multiple of the first count's duration. So counting
    /// takes at most 1/50 of a CPU.
    private static let costFactor: Int64 = 50
    /// The maximum time that INFO waits for counts.
    private static let patienceMilliseconds: Int64 = 250

    private let lock = Lock()
    private let changed = Condition()
    private var known: [String: Known] = [:]
    private var isCounting: Set<String> = []
    private let isStopping = Atomic<Bool>(false)
    /// The counting thread, which is created for the first count.
    private var pool: WorkerPool?

    /// Stops the counting thread. After that, ``counts(of:asked:)`` returns only results that exist already.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
        let pool = lock.withLock { self.pool.take() }
        pool?.stop()
    }

    /// Returns the number of entries of each database. If counting is fast, waits for a count that began after the
    /// request. Otherwise, the numbers may be a minute old, or older if a count takes more than a second.
    /// - Parameter asked: the time of the request, in nanoseconds of the monotonic clock.
    /// - Returns: the results in the order of `databases`; nil for a database that has not been counted yet.
    func counts(of databases: [Database], asked: Int64) -> [Count?] {
        let end = MonotonicClock.nanoseconds() + Self.patienceMilliseconds * 1_000_000
        return lock.withLock {
            for database in databases where !isCurrent(database.name, asked) { begin(database) }
            for database in databases {
                while !isCurrent(database.name, asked) {
                    let left = (end - MonotonicClock.nanoseconds()) / 1_000_000
                    guard left > 0, changed.wait(lock, milliseconds: left) else { break }
                    // The count that has just ended may have begun before the request: start another one.
                    if !isCounting.contains(database.name), !isCurrent(database.name, asked) { begin(database) }
                }
            }
            return databases.map { known[$0.name]?.count }
        }
    }

    /// Whether the last result for a database can be returned. The caller holds `lock`.
    private func isCurrent(_ name: String, _ asked: Int64) -> Bool {
        guard let last = known[name] else { return false }
        if last.begun >= asked { return true }
        return last.cost > Self.cheapNanoseconds
            && asked - last.begun < max(Self.staleNanoseconds, Self.costFactor * last.cost)
    }

    /// Starts to count the entries of a database, unless that is in progress. The caller holds `lock`.
    private func begin(_ database: Database) {
        guard !isStopping.load(ordering: .relaxed), isCounting.insert(database.name).inserted else { return }
        let pool = pool ?? WorkerPool(name: "larder-count", threads: 1)
        self.pool = pool
        pool.submit { [self] in
            let begun = MonotonicClock.nanoseconds()
            let count = count(database)
            let cost = MonotonicClock.nanoseconds() - begun
            lock.withLock {
                known[database.name] = (count, begun, cost)
                isCounting.remove(database.name)
                changed.broadcast()
            }
        }
    }

    /// Counts the entries of a database.
    /// - Returns: nil if the database cannot be read. Commands that use the database report that error.
    private func count(_ database: Database) -> Count? {
        var count = Count()
        var sum: Double = 0
        do throws(LarderError) {
            let options = EnumerationOptions(includeExpired: true)
            guard let cursor = try database.cursor(options) else { return count }
            defer { cursor.close() }
            var seen = 0
            while try cursor.next() {
                seen += 1
                if seen % 4096 == 0, isStopping.load(ordering: .relaxed) { return nil }
                let (header, rules, now) = (try cursor.header(), database.rules, database.now())
                switch rules.freshness(header, now: now) {
                case .fresh: count.entries += 1
                case .stale: count.stale += 1
                case .gone: break
                }
                guard let deadline = rules.deadline(header), now < deadline else { continue }
                count.expiring += 1
                sum += Double(deadline - now)
            }
        } catch {
            return nil
        }
        if count.expiring > 0 { count.averageLife = Int64(sum / Double(count.expiring)) }
        return count
    }
}
