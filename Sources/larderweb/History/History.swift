import Larder
import LarderClient
import Platform
import Services

/// The figures of the last minutes, in memory, and of the last day, in a larder of larderweb's own: entries that expire. What
/// it does not take stays in memory.
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
    /// Nil to keep everything in memory.
    private let place: HistoryStore.Place?
    /// Of the thread of the samples, as the next two. Nil while it could not be opened.
    private var store: HistoryStore?
    private var triedAt = Int64.min
    /// What the log says of the daemon.
    private var said = ""
    /// What is wrong with the larder; nil for nothing.
    private var trouble: String?

    private static let recentSeconds: Int64 = 2
    /// How long to wait with another try to open the larder.
    private static let pauseMilliseconds: Int64 = 60_000
    private static let recentCount = 300
    private static let dayCount = 1_440
    private static let daySeconds: Int64 = 86_400

    /// - Parameter place: nil to keep everything in memory.
    init(_ collector: Collector, _ place: HistoryStore.Place?, _ log: Log) {
        self.collector = collector
        self.place = place
        self.log = log
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
                if isOver { break }
            }
            store?.close()
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
        lock.withLock { place == nil ? "the last day is kept in memory only (--history)" : trouble }
    }

    // MARK: On the thread of the samples

    private func take() {
        openStore()
        let figures: DaemonFigures
        do throws(LarderClientError) {
            figures = try collector.figures()
        } catch {
            tell("the daemon is away: \(error.message)", .warning)
            return
        }
        tell("the daemon answers: larderd \(figures.info.text("larder_version") ?? "")", .info)
        let sample = Sample(figures, time: Int64(time(nil)))
        let isNewMinute = lock.withLock {
            // A machine that is busy brings two to one second.
            if let last = recent.last, last.time >= sample.time { return false }
            recent = recent.suffix(Self.recentCount - 1) + [sample]
            guard day.last.map({ $0.time / 60 != sample.time / 60 }) ?? true else { return false }
            day = day.suffix(Self.dayCount - 1) + [sample]
            return true
        }
        guard isNewMinute, let store else { return }
        attempt { () throws(LarderError) in try store.keep(sample) }
    }

    /// Says something once.
    private func tell(_ text: String, _ level: Log.Level) {
        guard said != text else { return }
        said = text
        log.write(level, text)
    }

    /// Opens the larder and brings back what was kept before, whether the daemon is there or not. Tries again in a while if
    /// that fails, as while another larderweb holds it.
    private func openStore() {
        let now = MonotonicClock.milliseconds()
        guard let place, store == nil, triedAt == .min || now >= triedAt + Self.pauseMilliseconds else { return }
        triedAt = now
        attempt { () throws(LarderError) in
            let opened = try HistoryStore(place)
            let kept = try opened.kept(since: Int64(time(nil)) - Self.daySeconds)
            store = opened
            lock.withLock { day = kept.filter { $0.time < day.first?.time ?? .max } + day }
            log.info("the last day's figures are kept in \(opened.directory)")
        }
    }

    private func attempt(_ work: () throws(LarderError) -> Void) {
        var problem: String?
        do throws(LarderError) { try work() } catch {
            problem = "the last day's figures stay in memory: \(error)"
        }
        let isNew = lock.withLock {
            defer { trouble = problem }
            return problem != nil && problem != trouble
        }
        if isNew, let problem { log.warning(problem) }
    }
}
