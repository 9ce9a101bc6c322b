import LarderClient

/// Passes each HTTP request to the code that answers it.
///
/// The API is for larderweb's own pages. Responses are JSON; an error is `{"error": "…"}` with a status of 400 or more.
/// Keys are percent-encoded bytes in URLs, and hexadecimal digits in bodies. Times are in milliseconds, unless noted.
///
/// - `GET /api/overview`: settings, the fields of INFO, commands, databases.
/// - `GET /api/history?range=recent|day&since=`: the points of the charts after `since`, in seconds since 1970.
/// - `GET /api/freshness`: for each database, the shares of entries that expire within a minute, an hour, a day, and
///   never.
/// - `GET /api/slow`, `GET /api/clients`: the newest 32 slow commands, the 200 most recently active connections.
/// - `GET /api/keys?database=&prefix=&count=&cursor=`, `GET /api/entry?database=&key=`: keys by page, one entry.
/// - `POST /api/delete`, `/api/policy`, `/api/purge`: with `--allow-changes`; a purge must repeat the database's name
///   in `confirm`.
struct Router: Sendable {
    private let collector: Collector
    private let access: AccessRules
    private let history: History
    private let entries: EntryBrowser
    private let changes: Changes?

    /// - Parameter allowsChanges: whether requests may change anything.
    init(_ collector: Collector, _ access: AccessRules, _ history: History, allowsChanges: Bool) {
        self.collector = collector
        self.access = access
        self.history = history
        entries = EntryBrowser(collector.link)
        changes = allowsChanges ? Changes(collector) : nil
    }

    func respond(_ request: HTTPRequest) -> HTTPResponse {
        if let refusal = access.refusal(request) { return refusal }
        do throws(LarderClientError) {
            return request.method == "POST" ? try post(request) : try get(request)
        } catch {
            return Self.failure(error)
        }
    }

    /// Returns the response for an error of the daemon or of the connection to it.
    private static func failure(_ error: LarderClientError) -> HTTPResponse {
        .problem(error.code == .server || error.code == .invalidArgument ? 400 : 503, error.serverText ?? error.message)
    }

    // MARK: Reads

    private func get(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        switch request.path {
        case "/healthz": return health()
        case "/metrics":
            let format = MetricsText.Format(accept: request.header("accept"))
            return .text(Metrics.text(collector, format), type: format.contentType)
        case "/api/overview":
            let settings = Overview.Settings(
                allowsChanges: changes != nil, asksForToken: access.asksForToken, historyNote: history.note)
            return .json(Overview(collector, settings))
        case "/api/history":
            guard let range = History.Range(rawValue: request.text("range") ?? "") else {
                return .problem(400, "range must be recent or day")
            }
            guard let since = Int64(request.text("since") ?? "0") else {
                return .problem(400, "since must be whole seconds since 1970")
            }
            return .json(history.points(range, since: since))
        case "/api/freshness": return .json(FreshnessReport.all(of: try collector.databases()))
        case "/api/slow": return .json(try SlowReport.newest(collector.polling))
        case "/api/clients": return .json(try ClientReport.all(collector.polling))
        case "/api/keys": return try entries.keys(request)
        case "/api/entry": return try entries.entry(request)
        default: return Pages.respond(request) ?? .problem(404, "not found")
        }
    }

    private struct Health: Encodable {
        let status = "ok"
        let daemon: String
    }

    /// Returns the health of larderweb: it is healthy even if the daemon is not available.
    private func health() -> HTTPResponse {
        .json(Health(daemon: (try? collector.figures()) == nil ? "away" : "up"))
    }

    // MARK: Changes

    private func post(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        switch request.path {
        case "/login":
            guard let cookie = access.login(request.form("token") ?? []) else {
                return .redirect(to: "/login?wrong=1")
            }
            return .redirect(to: "/", headers: [("Set-Cookie", cookie)])
        case "/logout": return .redirect(to: "/login", headers: [("Set-Cookie", access.logout(request))])
        case let path where path.hasPrefix("/api/"):
            // Require JSON, because forms on pages of other sites cannot send this content type.
            let type = request.header("content-type")?.lowercased().split(separator: ";").first ?? ""
            guard type.filter({ $0 != " " && $0 != "\t" }) == "application/json" else {
                return .problem(415, "the body must be application/json")
            }
            guard let changes else { return .problem(403, "changes are disabled (--allow-changes)") }
            return try changes.respond(path, request.body)
        default: return .problem(404, "this path does not accept POST")
        }
    }
}
