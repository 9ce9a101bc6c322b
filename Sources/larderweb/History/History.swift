import Larder
import LarderClient
import LarderPlatform
import LarderServices

/// The figures for the charts. Those of the last minutes are in memory. Those of the last day are expiring entries in
/// larderweb's own larder; if the larder is not available, they are in memory too.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
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
    /// Where the larder is; nil to keep everything in memory.
    private let place: HistoryStore.Place?
    /// The larder; nil until it is open. This and the next two variables are used only by the sampling thread.
    private var store: HistoryStore?
    private var triedAt = Int64.min
    /// The last logged state of the daemon.
    private var said = ""
    /// Why the larder cannot be used; nil if it can.
    private var trouble: String?
    /// The last error that the larder reported, and its time in milliseconds; nil if it reported no error recently.
    private var complaint: (text: String, at: Int64)?
    /// Limits the number of logged errors and warnings of the larder: while a disk is full, there may be one per
    /// second.
    private var complaintLines = LineRate(milliseconds: 60_000)

    /// The intervals of sampling. Tests use shorter ones.
    struct Rhythm {
        var sampleMilliseconds: Int64 = 2_000
        /// The interval in seconds of the samples that are kept for a day.
        var keptSeconds: Int64 = 60
        /// The time before the next attempt to open the larder.
        var pauseMilliseconds: Int64 = 60_000
    }

    private let rhythm: Rhythm
    /// If the clock is set back by at most this number of seconds, the change is not logged.
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

    /// Returns the points after a time in seconds since 1970, oldest first. If all points are before that time, because
    /// the clock was set back, returns all of them.
    func points(_ range: Range, since: Int64) -> [HistoryPoint] {
        let (samples, gap) = lock.withLock {
            range == .recent ? (recent.samples, Int64(30)) : (day.samples, Int64(300))
        }
        let points = HistoryPoint.points(of: samples, gapSeconds: gap)
        guard let last = points.last, last.time >= since else { return points }
        return points.filter { $0.time > since }
    }

    /// Why the last day's figures are only in memory; nil if they are stored.
    var note: String? {
        lock.withLock { () -> String? in
            place == nil ? "the last day is kept in memory only (--history)" : trouble ?? complaint?.text
        }
    }

    // MARK: On the sampling thread

    private func take() {
        openStore()
        let figures: DaemonFigures
        do throws(LarderClientError) {
            figures = try collector.figures()
        } catch {
            report("the daemon is not available: \(error.message)", .warning)
            lock.withLock {
                recent.interrupt()
                day.interrupt()
            }
            return
        }
        report("connected to larderd \(figures.info.text("larder_version") ?? "")", .info)
        let sample = Sample(figures, time: Int64(time(nil)))
        let (newMinute, back) = lock.withLock { () -> (Sample?, Int64) in
            let back = (recent.samples.last?.time ?? sample.time) - sample.time
            // On a busy machine, two samples may have the same second; `add` then drops the new one.
            _ = recent.add(sample)
            return (day.add(sample), back)
        }
        if back > Self.correctionSeconds {
            log.warning("the clock was set back by \(back) s: dropped figures with later times")
        }
        guard let newMinute, let store else { return }
        attempt { () throws(LarderError) in try store.keep(newMinute) }
        endComplaint()
    }

    /// Logs a state of the daemon, unless it was the last one logged.
    private func report(_ text: String, _ level: Log.Level) {
        guard said != text else { return }
        said = text
        log.write(level, text)
    }

    /// Opens the larder and loads the stored samples, even without a daemon. If that fails, for example because another
    /// larderweb has the larder open, retries later.
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

    /// Logs the larder's events: all damage, and at most one other line a minute. Called from any thread.
    private func take(_ event: CacheEvent) {
        guard event.level == .error || event.level == .warning else { return }
        let text = "the larder of the last day's figures: \(event.message)"
        let now = MonotonicClock.milliseconds()
        let skipped = lock.withLock { () -> Int? in
            // An error about damage is soon over, because the damage is salvaged at once.
            if event.level == .error, !event.isDamage { complaint = (text, now) }
            return event.isDamage ? 0 : complaintLines.line(at: now)
        }
        guard let skipped else { return }
        log.write(
            event.level == .error ? .error : .warning,
            text + (event.isDamage ? Self.remedy : "") + LineRate.rest(skipped, "lines like this"))
    }

    /// Advice about damage. It does not suggest a repair, because the larder has only the figures of a day.
    private static let remedy =
        ". Lost figures are a gap in the charts of the last day; the damaged files are below DAMAGED, and may be removed. "
        + "Test the disk (smartctl) and the memory"

    /// Clears an error that has not recurred for a while. The larder retries continuously, so the cause must be gone.
    private func endComplaint() {
        let now = MonotonicClock.milliseconds()
        let isOver = lock.withLock { () -> Bool in
            guard let at = complaint?.at, now - at >= rhythm.pauseMilliseconds else { return false }
            complaint = nil
            complaintLines = LineRate(milliseconds: 60_000)
            return true
        }
        if isOver { log.info("storing the last day's figures works again") }
    }

    private func attempt(_ work: () throws(LarderError) -> Void) {
        var problem: String?
        do throws(LarderError) { try work() } catch {
            problem = "the last day's figures are kept in memory only: \(error)"
        }
        let previous = lock.withLock {
            defer { trouble = problem }
            return trouble
        }
        if let problem, problem != previous { log.warning(problem) }
        if problem == nil, previous != nil { log.info("storing the last day's figures works again") }
    }
}
