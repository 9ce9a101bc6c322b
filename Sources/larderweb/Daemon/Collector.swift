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
    private let infos: Remembered<DaemonFigures>
    private let lists: Remembered<[DatabaseInfo]>

    init(_ link: DaemonLink, polling: DaemonLink) {
        self.link = link
        self.polling = polling
        infos = Remembered(milliseconds: 500) { () throws(LarderClientError) in
            let reply = try polling.command("INFO", "everything")
            guard let text = reply.string else { throw .unexpectedReply(to: "INFO", "text") }
            return DaemonFigures(text)
        }
        // To list the databases, the daemon counts the entries written since its previous list. This may take long, so
        // limit the share of time that is spent on lists.
        lists = Remembered(milliseconds: 2_000, costFactor: 50) { () throws(LarderClientError) in
            try polling.withClient { client throws(LarderClientError) in try client.databases() }
        }
    }

    func figures() throws(LarderClientError) -> DaemonFigures { try infos.value() }

    func databases() throws(LarderClientError) -> [DatabaseInfo] { try lists.value() }

    /// Drops the cached replies after a change, so that the browser sees its effect.
    func forget() {
        infos.forget()
        lists.forget()
    }
}

/// A value that is fetched on demand if the cached value is too old; failures are cached too. Concurrent callers wait
/// for the same fetch.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class Remembered<Value: Sendable>: @unchecked Sendable {
    private static var longestMilliseconds: Int64 { 60_000 }

    private let lock = Lock()
    private let leastMilliseconds: Int64
    private let costFactor: Int64
    private let load: @Sendable () throws(LarderClientError) -> Value
    private var last: Result<Value, LarderClientError>?
    private var goodUntil = Int64.min

    /// - Parameters:
    ///   - milliseconds: the minimum time for which a value is valid.
    ///   - costFactor: after a slow fetch, a value is valid for this many times the fetch's duration, up to a minute.
    init(
        milliseconds: Int64, costFactor: Int64 = 0, load: @escaping @Sendable () throws(LarderClientError) -> Value
    ) {
        leastMilliseconds = milliseconds
        self.costFactor = costFactor
        self.load = load
    }

    func value() throws(LarderClientError) -> Value {
        let result = lock.withLock { () -> Result<Value, LarderClientError> in
            let start = MonotonicClock.milliseconds()
            if let last, start < goodUntil { return last }
            let result = Result { () throws(LarderClientError) in try load() }
            let end = MonotonicClock.milliseconds()
            // The duration of a failed fetch does not predict that of the next one.
            let cost = (try? result.get()) == nil ? 0 : (end - start) * costFactor
            goodUntil = end + max(leastMilliseconds, min(cost, Self.longestMilliseconds))
            last = result
            return result
        }
        return try result.get()
    }

    /// Makes the next call of ``value()`` fetch a new value.
    func forget() { lock.withLock { goodUntil = .min } }
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
        entries = Dictionary(counted.compactMap { name, parts in parts["keys"].map { (name, $0) } }) { first, _ in first
        }
        expiring = Dictionary(counted.compactMap { name, parts in parts["expires"].map { (name, $0) } }) { $1 }
    }
}
