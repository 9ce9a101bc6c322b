import Larder
import LarderClient
import LarderPlatform
import LarderServices

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
    private var day: SampleSeries
    /// Nil to keep everything in memory.
    private let place: HistoryStore.Place?
    /// Of the thread of the samples, as the next two. Nil while it could not be opened.
    private var store: HistoryStore?
    private var triedAt = Int64.min
    /// What the log says of the daemon.
    private var said = ""
    /// What is wrong with the larder; nil for nothing.
    private var trouble: String?
    /// What the larder itself said last of an error, and when; nil for nothing, or what is over.
    private var complaint: (text: String, at: Int64)?
    /// Its errors and warnings: while a disk is full there may be one each second.
    private var complaintLines = LineRate(milliseconds: 60_000)

    /// How often what is done; tests are in a hurry.
    struct Rhythm {
        var sampleMilliseconds: Int64 = 2_000
        /// One sample in so many seconds is kept for the day.
        var keptSeconds: Int64 = 60
        /// How long to wait with another try to open the larder.
        var pauseMilliseconds: Int64 = 60_000
    }

    private let rhythm: Rhythm
    /// The clock may be corrected by so much without a word.
    private static let correctionSeconds: Int64 = 5
    private static let daySeconds: Int64 = 86_400

    /// - Parameter place: nil to keep everything in memory.
    init(_ collector: Collector, _ place: HistoryStore.Place?, _ log: Log, rhythm: Rhythm = Rhythm()) {
        self.collector = collector
        self.rhythm = rhythm
        day = SampleSeries(countMax: 1_440, unitSeconds: rhythm.keptSeconds)
        self.place = place
        self.log = log
    }

    func start() {
        thread = WorkThread(name: "larderweb-samples") { [self] in
            var next = MonotonicClock.milliseconds()
            while true {
                take()
                next = max(next + rhythm.sampleMilliseconds, MonotonicClock.milliseconds())
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
        lock.withLock { () -> String? in
            place == nil ? "the last day is kept in memory only (--history)" : trouble ?? complaint?.text
        }
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
        endComplaint()
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
        guard let place, store == nil, triedAt == .min || now >= triedAt + rhythm.pauseMilliseconds else { return }
        triedAt = now
        attempt { () throws(LarderError) in
            let opened = try HistoryStore(place) { [weak self] in self?.take($0) }
            let now = Int64(time(nil))
            let kept = try opened.kept(since: now - Self.daySeconds)
            store = opened
            lock.withLock { day.prepend(kept, now: now) }
            log.info("the last day's figures are kept in \(opened.directory)")
        }
    }

    /// Says what an operator should know of the larder: of damage all, of the rest one line a minute. Called from any thread.
    private func take(_ event: CacheEvent) {
        guard event.level == .error || event.level == .warning else { return }
        let text = "the larder of the last day's figures: \(event.message)"
        let isDamage = event.message.contains("damaged")
        let now = MonotonicClock.milliseconds()
        let skipped = lock.withLock { () -> Int? in
            // Damage is dealt with at once.
            if event.level == .error, !isDamage { complaint = (text, now) }
            return isDamage ? 0 : complaintLines.line(at: now)
        }
        guard let skipped else { return }
        log.write(
            event.level == .error ? .error : .warning,
            text + (isDamage ? Self.remedy : "") + LineRate.rest(skipped, "lines of it"))
    }

    /// What to do about damage: a day's figures are not worth more.
    private static let remedy =
        ". What is lost is a gap in the charts of the last day; the damaged files are below DAMAGED there, and may be removed. "
        + "Test the disk (smartctl) and the memory"

    /// An error of the larder that has not come again for a while is over: it tries again all the time.
    private func endComplaint() {
        let now = MonotonicClock.milliseconds()
        let isOver = lock.withLock { () -> Bool in
            guard let at = complaint?.at, now - at >= rhythm.pauseMilliseconds else { return false }
            complaint = nil
            complaintLines = LineRate(milliseconds: 60_000)
            return true
        }
        if isOver { log.info("the last day's figures are kept again") }
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
