import LarderClient
import LarderPlatform

/// Caches the daemon's replies, so that each is requested only once per interval, regardless of the number of browsers.
///
/// Thread-safe.
final class Collector: Sendable {
    /// The connections for requests from browsers. Their commands are logged like those of any client.
    let link: DaemonLink
    /// The connections for periodic requests. Their commands are not logged, if the daemon permits that.
    let polling: DaemonLink
    let figures: Remembered<DaemonFigures>
    let databases: Remembered<[DatabaseInfo]>

    init(_ link: DaemonLink, polling: DaemonLink) {
        self.link = link
        self.polling = polling
        figures = Remembered(milliseconds: 500) { () throws(LarderClientError) in
            let reply = try polling.command("INFO", "everything")
            guard let text = reply.string else { throw .unexpectedReply(to: "INFO", "text") }
            return DaemonFigures(text)
        }
        // To list the databases, the daemon counts the entries written since its previous list. This may take long, so
        // limit the share of time that is spent on lists.
        databases = Remembered(milliseconds: 2_000, costFactor: 50) { () throws(LarderClientError) in
            try polling.withClient { client throws(LarderClientError) in try client.databases() }
        }
    }

    /// Drops the cached replies after a change, so that the browser sees its effect.
    func forget() {
        figures.forget()
        databases.forget()
    }
}

/// A value that is fetched on demand if the cached value is too old; failures are cached too. Concurrent callers wait
/// for the same fetch.
final class Remembered<Value: Sendable>: Sendable {
    private static var longestMilliseconds: Int64 { 60_000 }

    private let leastMilliseconds: Int64
    private let costFactor: Int64
    private let load: @Sendable () throws(LarderClientError) -> Value
    /// The last result; nil if the next call has to fetch a new one.
    private let last = Locked<(result: Result<Value, LarderClientError>, goodUntil: Int64)?>(nil)

    /// - Parameters:
    ///   - milliseconds: the minimum time for which a value is valid.
    ///   - costFactor: after a slow fetch, a value is valid for this many times the fetch's duration, up to a minute.
    init(
        milliseconds: Int64, costFactor: Int64 = 0, load: @escaping @Sendable () throws(LarderClientError) -> Value
    ) { (leastMilliseconds, self.costFactor, self.load) = (milliseconds, costFactor, load) }

    func value() throws(LarderClientError) -> Value {
        let result = last.withLock { last in
            let start = MonotonicClock.milliseconds()
            if let last, start < last.goodUntil { return last.result }
            let result = Result { () throws(LarderClientError) in try load() }
            let end = MonotonicClock.milliseconds()
            // The duration of a failed fetch does not predict that of the next one.
            let cost = (try? result.get()) == nil ? 0 : (end - start) * costFactor
            last = (result, end + max(leastMilliseconds, min(cost, Self.longestMilliseconds)))
            return result
        }
        return try result.get()
    }

    /// Makes the next call of ``value()`` fetch a new value.
    func forget() { last.withLock { $0 = nil } }
}

/// The daemon's figures at one instant.
struct DaemonFigures: Sendable {
    let info: InfoText
    /// The commands with calls, most frequent first.
    let commands: [CommandFigures]
    /// The number of fresh entries by database, for the databases that the daemon has counted.
    let entries: [String: Double]
    /// The number of fresh entries that have a deadline, by database.
    let expiring: [String: Double]
    /// Whether the daemon has counted all databases; false just after its start.
    let isCounted: Bool

    init(_ text: String) {
        let info = InfoText(text)
        self.info = info
        isCounted = info.number("uncounted_databases") ?? 0 == 0
        commands = info.commands.values.sorted { ($1.calls, $0.name) < ($0.calls, $1.name) }
        let counted =
            info.lists("database_").map { ($0.name, $0.parts) }
            + info.lists("db").compactMap { Int($0.name) == nil ? nil : ($0.name, $0.parts) }
        entries = Dictionary(counted.compactMap { name, parts in parts["keys"].map { (name, $0) } }) { old, _ in old }
        expiring = Dictionary(counted.compactMap { name, parts in parts["expires"].map { (name, $0) } }) { $1 }
    }
}
