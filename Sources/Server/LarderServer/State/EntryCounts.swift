import LarderEngine
import LarderPlatform
import Synchronization

/// The number of entries of each database, for INFO. A separate thread counts them, one database at a time, because
/// INFO must not read millions of entries each time.
///
/// `@unchecked Sendable`: the table is guarded by `lock`.
final class EntryCounts: @unchecked Sendable {
    /// The figures of a database in INFO.
    struct Count: Equatable {
        /// Fresh entries.
        var entries = 0
        /// The number of entries with a deadline.
        var expiring = 0
        /// The average remaining lifetime, in milliseconds.
        var averageLife: Int64 = 0
        /// Expired entries that are kept for their grace.
        var stale = 0
    }

    private struct Known {
        var count: Count?
        /// The start of the count, in nanoseconds of the monotonic clock.
        var begun: Int64
        var cost: Int64
    }

    /// A count that takes longer than this is not repeated while the last result is younger than `staleNanoseconds`.
    private static let cheapNanoseconds: Int64 = 20_000_000
    private static let staleNanoseconds: Int64 = 60_000_000_000
    /// After a count, the next one waits for this multiple of its duration, so that counting takes at most 1/50 of a
    /// CPU.
    private static let costFactor: Int64 = 50
    /// The longest time that INFO waits for a count.
    private static let patienceMilliseconds: Int64 = 250

    private let lock = Lock()
    private let changed = Condition()
    private var known: [String: Known] = [:]
    private var isCounting: Set<String> = []
    private let isStopping = Atomic<Bool>(false)
    /// Created at the first count.
    private var pool: WorkerPool?

    /// Stops the counting thread. Later calls of ``counts(of:asked:)`` start no counts.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
        let pool = lock.withLock {
            defer { self.pool = nil }
            return self.pool
        }
        pool?.stop()
    }

    /// Returns the counts of databases: current ones if counting is cheap, otherwise about a minute old.
    /// - Parameters:
    ///   - asked: nanoseconds of the monotonic clock; a count that started later is current.
    /// - Returns: in the order of `databases`; nil for a database that was not counted yet.
    func counts(of databases: [Database], asked: Int64) -> [Count?] {
        let end = MonotonicClock.nanoseconds() + Self.patienceMilliseconds * 1_000_000
        return lock.withLock {
            for database in databases where !isCurrent(database.name, asked) { begin(database) }
            for database in databases {
                while !isCurrent(database.name, asked) {
                    let left = (end - MonotonicClock.nanoseconds()) / 1_000_000
                    guard left > 0, changed.wait(lock, milliseconds: left) else { break }
                    // A count that is already running started too early.
                    if !isCounting.contains(database.name), !isCurrent(database.name, asked) { begin(database) }
                }
            }
            return databases.map { known[$0.name]?.count }
        }
    }

    /// Called with `lock` held.
    private func isCurrent(_ name: String, _ asked: Int64) -> Bool {
        guard let last = known[name] else { return false }
        if last.begun >= asked { return true }
        return last.cost > Self.cheapNanoseconds
            && asked - last.begun < max(Self.staleNanoseconds, Self.costFactor * last.cost)
    }

    /// Called with `lock` held.
    private func begin(_ database: Database) {
        guard !isStopping.load(ordering: .relaxed), isCounting.insert(database.name).inserted else { return }
        let pool = pool ?? WorkerPool(name: "larder-count", threads: 1)
        self.pool = pool
        pool.submit { [self] in
            let begun = MonotonicClock.nanoseconds()
            let count = count(database)
            let cost = MonotonicClock.nanoseconds() - begun
            lock.withLock {
                known[database.name] = Known(count: count, begun: begun, cost: cost)
                isCounting.remove(database.name)
                changed.broadcast()
            }
        }
    }

    /// - Returns: nil if the database cannot be read; its own commands report that.
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
