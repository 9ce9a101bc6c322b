import JSONCoding
import LarderClient
import Platform
import Services

/// The figures of the last minutes, in memory, and of the last day, in a database of the daemon: entries that expire.
///
/// Databases are cheap, and a larder of larderweb's own would need its engine and a place on the disk. What the daemon does
/// not take stays in memory.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class History: @unchecked Sendable {
    enum Range: String {
        case recent, day
    }

    private let collector: Collector
    private let log: Log
    private let lock = Lock()
    private let changed = Condition()
    private var thread: WorkThread?
    private var isOver = false
    private var recent: [Sample] = []
    private var day: [Sample] = []
    private var store: HistoryStore?
    private var isLoaded = false
    /// What the log says of the daemon.
    private var said = ""
    /// What is wrong with the database; nil for nothing.
    private var trouble: String?

    private static let recentSeconds: Int64 = 2
    private static let recentCount = 300
    private static let dayCount = 1_440
    private static let daySeconds: Int64 = 86_400

    /// - Parameter database: nil to keep everything in memory.
    init(_ collector: Collector, database: String?, _ log: Log) {
        self.collector = collector
        self.log = log
        store = database.map { HistoryStore(collector.link, $0) }
    }

    func start() {
        thread = WorkThread(name: "larderweb-samples") { [self] in
            var next = MonotonicClock.milliseconds()
            while true {
                take()
                next = max(next + Self.recentSeconds * 1000, MonotonicClock.milliseconds())
                let isOver = lock.withLock {
                    while !self.isOver, case let left = next - MonotonicClock.milliseconds(), left > 0 {
                        changed.wait(lock, milliseconds: left)
                    }
                    return self.isOver
                }
                if isOver { return }
            }
        }
    }

    func stop() {
        lock.withLock {
            isOver = true
            changed.broadcast()
        }
        thread?.join()
    }

    /// The points behind an instant, in seconds since 1970, the oldest first.
    func points(_ range: Range, since: Int64) -> [HistoryPoint] {
        let (samples, gap) = lock.withLock { range == .recent ? (recent, Int64(30)) : (day, Int64(300)) }
        return HistoryPoint.points(of: samples, gapSeconds: gap).filter { $0.time > since }
    }

    /// Why the last day is kept in memory only; nil if it is not.
    var note: String? {
        lock.withLock { store == nil ? "the last day is kept in memory only (--history)" : trouble }
    }

    // MARK: On the thread of the samples

    private func take() {
        let figures: DaemonFigures
        do throws(LarderClientError) {
            figures = try collector.figures()
        } catch {
            tell("the daemon is away: \(error.message)", .warning)
            return
        }
        tell("the daemon answers: larderd \(figures.info.text("larder_version") ?? "")", .info)
        load()
        let sample = Sample(figures, time: Int64(time(nil)))
        let isNewMinute = lock.withLock {
            // A machine that is busy brings two to one second.
            if let last = recent.last, last.time >= sample.time { return false }
            recent = recent.suffix(Self.recentCount - 1) + [sample]
            guard day.last.map({ $0.time / 60 != sample.time / 60 }) ?? true else { return false }
            day = day.suffix(Self.dayCount - 1) + [sample]
            return true
        }
        if isNewMinute { attempt { (store) throws(LarderClientError) in try store.keep(sample) } }
    }

    /// Says something once.
    private func tell(_ text: String, _ level: Log.Level) {
        guard said != text else { return }
        said = text
        log.write(level, text)
    }

    /// Brings back what was kept before, once the daemon is there.
    private func load() {
        guard !isLoaded else { return }
        attempt { [self] (store) throws(LarderClientError) in
            let kept = try store.kept(since: Int64(time(nil)) - Self.daySeconds)
            lock.withLock { day = kept.filter { $0.time < day.first?.time ?? .max } + day }
            isLoaded = true
        }
    }

    private func attempt(_ work: (HistoryStore) throws(LarderClientError) -> Void) {
        guard let store else { return }
        var problem: String?
        do throws(LarderClientError) { try work(store) } catch {
            problem = "the last day's figures stay in memory: \(error)"
        }
        let isNew = lock.withLock {
            defer { trouble = problem }
            return problem != nil && trouble == nil
        }
        if isNew, let problem { log.warning(problem) }
    }
}
