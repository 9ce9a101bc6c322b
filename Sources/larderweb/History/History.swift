import Larder
import LarderClient
import LarderPlatform
import LarderServices

/// The figures for the charts. Those of the last minutes are in memory. Those of the last day are expiring entries in
/// larderweb's own larder; if the larder is not available, they are in memory too.
final class History: Sendable {
    enum Range: String {
        case recent, day
    }

    private let collector: Collector
    /// Where the larder is; nil to keep everything in memory.
    private let place: HistoryStore.Place?
    private let log: Log
    private let rhythm: Rhythm
    private let state: Locked<State>
    private let ending = Latch()

    private struct State {
        var recent = SampleSeries(countMax: 300, unitSeconds: 1)
        var day: SampleSeries
        /// Why the larder cannot be used, or the last error that it reported, with its time in milliseconds; nil if it
        /// has worked without an error for a while.
        var problem: (text: String, at: Int64)?
        /// Limits the number of logged errors and warnings of the larder: while a disk is full, there may be one per
        /// second.
        var problemLines = LineRate(milliseconds: 60_000)
        /// The last logged state of the daemon.
        var said = ""
        var thread: WorkThread?
    }

    /// The intervals of sampling. Tests use shorter ones.
    struct Rhythm {
        var sampleMilliseconds: Int64 = 2_000
        /// The interval in seconds of the samples that are kept for a day.
        var keptSeconds: Int64 = 60
        /// The time before the next attempt to open the larder, and without an error until it is regarded as working.
        var pauseMilliseconds: Int64 = 60_000
    }

    /// If the clock is set back by at most this number of seconds, the change is not logged.
    private static let correctionSeconds: Int64 = 5
    private static let daySeconds: Int64 = 86_400

    /// - Parameter place: nil to keep everything in memory.
    init(_ collector: Collector, _ place: HistoryStore.Place?, _ log: Log, rhythm: Rhythm = Rhythm()) {
        self.collector = collector
        self.place = place
        self.log = log
        self.rhythm = rhythm
        state = Locked(State(day: SampleSeries(countMax: 1_440, unitSeconds: rhythm.keptSeconds)))
    }

    func start() {
        let thread = WorkThread(name: "larderweb-samples") { [self] in
            var store: HistoryStore?
            var triedAt = Int64.min
            var next: Int64
            repeat {
                let now = MonotonicClock.milliseconds()
                next = now + rhythm.sampleMilliseconds
                // Open the larder even without a daemon. If that fails, for example because another larderweb has the
                // larder open, retry later.
                if store == nil, let place, triedAt == .min || now >= triedAt + rhythm.pauseMilliseconds {
                    triedAt = now
                    store = attempt { () throws(LarderError) in try open(place) }
                }
                take(store)
            } while !ending.wait(milliseconds: next - MonotonicClock.milliseconds())
            store?.close()
        }
        state.withLock { $0.thread = thread }
    }

    func stop() {
        ending.set()
        state.withLock { $0.thread.take() }?.join()
    }

    /// Returns the points after a time in seconds since 1970, oldest first. If all points are before that time, because
    /// the clock was set back, returns all of them.
    func points(_ range: Range, since: Int64) -> [JSONObject] {
        let (samples, gap) = state.withLock {
            range == .recent ? ($0.recent.samples, Int64(30)) : ($0.day.samples, Int64(300))
        }
        let isSetBack = samples.last.map { $0.time < since } ?? true
        return zip([nil] + samples, samples).filter { isSetBack || $1.time > since }.map { $1.point(after: $0, gap) }
    }

    /// Why the last day's figures are only in memory; nil if they are stored.
    var note: String? {
        place == nil ? "the last day is kept in memory only (--history)" : state.withLock { $0.problem?.text }
    }

    // MARK: On the sampling thread

    private func take(_ store: HistoryStore?) {
        let figures: DaemonFigures
        do throws(LarderClientError) {
            figures = try collector.figures.value()
        } catch {
            report("the daemon is not available: \(error.message)", .warning)
            return state.withLock {
                $0.recent.interrupt()
                $0.day.interrupt()
            }
        }
        report("connected to larderd \(figures.info.text("larder_version") ?? "")", .info)
        let sample = Sample(figures, time: Int64(time(nil)))
        let (newMinute, back) = state.withLock { state -> (Sample?, Int64) in
            let back = (state.recent.samples.last?.time ?? sample.time) - sample.time
            // On a busy machine, two samples may have the same second; `add` then drops the new one.
            _ = state.recent.add(sample)
            return (state.day.add(sample), back)
        }
        if back > Self.correctionSeconds {
            log.warning("the clock was set back by \(back) s: dropped figures with later times")
        }
        guard let newMinute, let store else { return }
        attempt { () throws(LarderError) in try store.keep(newMinute) }
        endProblem()
    }

    /// Logs a state of the daemon, unless it was the last one logged.
    private func report(_ text: String, _ level: Log.Level) {
        let isNew = state.withLock { state in
            defer { state.said = text }
            return state.said != text
        }
        if isNew { log.write(level, text) }
    }

    /// Opens the larder and loads the stored samples.
    private func open(_ place: HistoryStore.Place) throws(LarderError) -> HistoryStore {
        let store = try HistoryStore(place) { [weak self] in self?.take($0) }
        let now = Int64(time(nil))
        let kept = try store.kept(since: now - Self.daySeconds)
        state.withLock { $0.day.prepend(kept, now: now) }
        log.info("the last day's figures are kept in \(store.directory)")
        return store
    }

    /// Uses the larder. Logs an error, unless it was the last one.
    /// - Returns: nil after an error.
    @discardableResult
    private func attempt<Result>(_ work: () throws(LarderError) -> Result) -> Result? {
        do throws(LarderError) { return try work() } catch {
            let text = "the last day's figures are kept in memory only: \(error)"
            let isNew = state.withLock { state in
                defer { state.problem = (text, MonotonicClock.milliseconds()) }
                return state.problem?.text != text
            }
            if isNew { log.warning(text) }
            return nil
        }
    }

    /// Logs the larder's events: all damage, and at most one other line a minute. Called from any thread.
    private func take(_ event: CacheEvent) {
        guard event.level == .error || event.level == .warning else { return }
        let text = "the larder of the last day's figures: \(event.message)"
        let now = MonotonicClock.milliseconds()
        let skipped = state.withLock { state -> Int? in
            // An error about damage is soon over, because the damage is salvaged at once.
            if event.level == .error, !event.isDamage { state.problem = (text, now) }
            return event.isDamage ? 0 : state.problemLines.line(at: now)
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
    private func endProblem() {
        let now = MonotonicClock.milliseconds()
        let isOver = state.withLock { state in
            guard let at = state.problem?.at, now - at >= rhythm.pauseMilliseconds else { return false }
            state.problem = nil
            state.problemLines = LineRate(milliseconds: 60_000)
            return true
        }
        if isOver { log.info("storing the last day's figures works again") }
    }
}

/// The samples of one daemon in larderweb's own larder, one per minute. They expire after 25 hours.
///
/// Thread-safe, like its cache.
struct HistoryStore: Sendable {
    /// The larder that has the samples, and the daemon they belong to.
    struct Place: Sendable {
        /// The larder's directory; nil for the default in the user's cache directory.
        let directory: String?
        /// The daemon's socket, so that the samples of different daemons are separate.
        let daemon: String
    }

    private let cache: Cache
    private let prefix: String

    private static let secondsKept = 90_000.0

    private static let database = "samples"

    /// Opens the larder, and creates it if it is missing. Damaged files are salvaged. Throws an error if the larder has
    /// databases of another program, whose entries the disk limit set here would evict.
    /// - Parameter onEvent: receives the larder's events, like ``CacheOptions/onEvent``.
    init(_ place: Place, onEvent: @escaping @Sendable (CacheEvent) -> Void) throws(LarderError) {
        if let other = try Cache.databases(in: place.directory).first(where: { $0 != Self.database }) {
            throw LarderError(
                .invalidArgument, "the larder of --history must be larderweb's own, but this one has other databases",
                operation: "open", database: other)
        }
        var options = CacheOptions()
        // A day's samples are less than a megabyte, and are read only once, so do not cache them.
        options.memoryBytes = 0
        options.blockCacheBytes = 0
        options.decodedModels = false
        options.writeBufferBytes = 1 << 20
        options.diskBytesMax = 16 << 20
        options.openFilesMax = 74
        options.onDamage = .salvage
        options.onEvent = onEvent
        options.onDecodingFailure = .treatAsMiss
        cache = try Cache(
            named: Self.database, interval: Self.secondsKept, directory: place.directory,
            options: options)
        prefix = "sample:\(place.daemon):"
    }

    /// The path of the larder.
    var directory: String { cache.directory }

    /// Returns the key of a sample, which ends with the number of minutes since 1970. This number has eight digits for
    /// the next century, so keys are in the order of time.
    private func key(_ seconds: Int64) -> String { prefix + "\(seconds / 60)" }

    func keep(_ sample: Sample) throws(LarderError) { try cache.set(sample, forKey: key(sample.time)) }

    /// Returns the samples since a time, oldest first. Skips unreadable samples.
    func kept(since start: Int64) throws(LarderError) -> [Sample] {
        try cache.entries(of: Sample.self, EntryOptions(prefix: prefix, from: key(start))).values()
            .filter { $0.time >= start }
    }

    func close() { cache.close() }
}
