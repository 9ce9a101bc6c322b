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
    private var recent = SampleSeries(countMax: 300, unitSeconds: 1)
    private var day = SampleSeries(countMax: 1_440, unitSeconds: 60)
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
    /// The clock may be corrected by so much without a word.
    private static let correctionSeconds: Int64 = 5
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

    /// The points behind an instant, in seconds since 1970, the oldest first. If there is none at that instant or behind it,
    /// all: the clock was set back since.
    func points(_ range: Range, since: Int64) -> [HistoryPoint] {
        let (samples, gap) = lock.withLock {
            range == .recent ? (recent.samples, Int64(30)) : (day.samples, Int64(300))
        }
        let points = HistoryPoint.points(of: samples, gapSeconds: gap)
        guard let last = points.last, last.time >= since else { return points }
        return points.filter { $0.time > since }
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
            lock.withLock {
                recent.interrupt()
                day.interrupt()
            }
            return
        }
        tell("the daemon answers: larderd \(figures.info.text("larder_version") ?? "")", .info)
        let sample = Sample(figures, time: Int64(time(nil)))
        let (newMinute, back) = lock.withLock { () -> (Sample?, Int64) in
            let back = (recent.samples.last?.time ?? sample.time) - sample.time
            // A machine that is busy brings two to one second.
            _ = recent.add(sample)
            return (day.add(sample), back)
        }
        if back > Self.correctionSeconds {
            log.warning("the clock was set back by \(back) s: figures from ahead of it are dropped")
        }
        guard let newMinute, let store else { return }
        attempt { () throws(LarderError) in try store.keep(newMinute) }
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
            let now = Int64(time(nil))
            let kept = try opened.kept(since: now - Self.daySeconds)
            store = opened
            lock.withLock { day.prepend(kept, now: now) }
            log.info("the last day's figures are kept in \(opened.directory)")
        }
    }

    private func attempt(_ work: () throws(LarderError) -> Void) {
        var problem: String?
        do throws(LarderError) { try work() } catch {
            problem = "the last day's figures stay in memory: \(error)"
        }
        let former = lock.withLock {
            defer { trouble = problem }
            return trouble
        }
        if let problem, problem != former { log.warning(problem) }
        if problem == nil, former != nil { log.info("the last day's figures are kept again") }
    }
}
