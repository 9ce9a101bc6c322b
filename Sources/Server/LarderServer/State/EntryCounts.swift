import LarderEngine
import LarderPlatform
import Synchronization

/// How many entries databases have, for INFO. A separate thread counts them, one database at a time, because INFO must
/// neither read millions of entries each time nor wait for that.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the table is read and written with the lock held.
final class EntryCounts: @unchecked Sendable {
    /// The figures of a database in INFO.
    struct Count: Equatable {
        /// Fresh entries.
        var entries = 0
        /// How many of them have a deadline.
        var expiring = 0
        /// The average rest of their lifetimes, in milliseconds.
        var averageLife: Int64 = 0
        /// Entries behind their deadlines that are kept for their grace.
        var stale = 0
    }

    private struct Known {
        var count: Count?
        /// When the count began, in nanoseconds of the monotonic clock.
        var begun: Int64
        var cost: Int64
    }

    /// A count that takes longer than this is not repeated for a while.
    private static let cheapNanoseconds: Int64 = 20_000_000
    private static let staleNanoseconds: Int64 = 60_000_000_000
    /// ... nor so often that counting takes more than a fiftieth of a processor.
    private static let costFactor: Int64 = 50
    /// How long INFO waits for a count at most.
    private static let patienceMilliseconds: Int64 = 250

    private let lock = Lock()
    private let changed = Condition()
    private var known: [String: Known] = [:]
    private var isCounting: Set<String> = []
    private let isStopping = Atomic<Bool>(false)
    /// Created when something is counted for the first time.
    private var pool: WorkerPool?

    /// Ends the thread. Later requests get no counts.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
        let pool = lock.withLock {
            defer { self.pool = nil }
            return self.pool
        }
        pool?.stop()
    }

    /// The counts of databases: as of now if counting is cheap, else as of a minute ago or a little more.
    /// - Parameters:
    ///   - asked: nanoseconds of the monotonic clock; a count that began later is an answer too.
    /// - Returns: in the order of `databases`; nil for one that was not counted yet.
    func counts(of databases: [Database], asked: Int64) -> [Count?] {
        let end = MonotonicClock.nanoseconds() + Self.patienceMilliseconds * 1_000_000
        return lock.withLock {
            for database in databases where !isCurrent(database.name, asked) { begin(database) }
            for database in databases {
                while !isCurrent(database.name, asked) {
                    let left = (end - MonotonicClock.nanoseconds()) / 1_000_000
                    guard left > 0, changed.wait(lock, milliseconds: left) else { break }
                    // A count that was running had begun too early.
                    if !isCounting.contains(database.name), !isCurrent(database.name, asked) { begin(database) }
                }
            }
            return databases.map { known[$0.name]?.count }
        }
    }

    /// Called with the lock held.
    private func isCurrent(_ name: String, _ asked: Int64) -> Bool {
        guard let last = known[name] else { return false }
        if last.begun >= asked { return true }
        return last.cost > Self.cheapNanoseconds
            && asked - last.begun < max(Self.staleNanoseconds, Self.costFactor * last.cost)
    }

    /// Called with the lock held.
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
