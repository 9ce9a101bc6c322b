import CLarderWebPages
import LarderClient
import LarderPlatform

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
/// - `GET /api/query?database=&query=&after=`, `GET /api/explain?database=&query=`: a page of a query's result, and how
///   the query is run.
/// - `GET /api/indexes?database=`: the indexes.
/// - `POST /api/delete`, `/api/policy`, `/api/purge`, `/api/create-index`, `/api/drop-index`: with `--allow-changes`; a
///   purge must repeat the database's name in `confirm`.
struct Router: Sendable {
    private let collector: Collector
    private let access: AccessRules
    private let history: History
    private let overview: Overview
    private let entries: EntryBrowser
    private let queries: QueryBrowser
    private let changes: Changes?

    /// - Parameter allowsChanges: whether requests may change anything.
    init(_ collector: Collector, _ access: AccessRules, _ history: History, allowsChanges: Bool) {
        self.collector = collector
        self.access = access
        self.history = history
        overview = Overview(collector)
        entries = EntryBrowser(collector.link)
        queries = QueryBrowser(collector.link)
        changes = allowsChanges ? Changes(collector) : nil
    }

    func respond(_ request: HTTPRequest) -> HTTPResponse {
        if let refusal = access.refusal(request) { return refusal }
        // As in ambiguous heads, either value could be meant.
        guard Set(request.query.map(\.name)).count == request.query.count else {
            return .problem(400, "a parameter in the URL is repeated")
        }
        do throws(LarderClientError) {
            return request.method == "POST" ? try post(request) : try get(request)
        } catch {
            let isOfRequest = error.code == .server || error.code == .invalidArgument
            return .problem(isOfRequest ? 400 : 503, error.serverText ?? error.message)
        }
    }

    // MARK: Reads

    private func get(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        switch request.path {
        case "/healthz":
            // larderweb is healthy even if the daemon is not available.
            let isUp = (try? collector.figures.value()) != nil
            return .json(["status": "ok", "daemon": isUp ? "up" : "away"])
        case "/metrics":
            let format = MetricsText.Format(accept: request.header("accept"))
            return .text(Metrics.text(collector, format), type: format.contentType)
        case "/api/overview":
            return .json(
                overview.all([
                    "allowsChanges": changes != nil, "asksForToken": access.asksForToken, "historyNote": history.note,
                ]))
        case "/api/history":
            guard let range = History.Range(rawValue: request.text("range") ?? "") else {
                return .problem(400, "range must be recent or day")
            }
            guard let since = Int64(request.text("since") ?? "0") else {
                return .problem(400, "since must be whole seconds since 1970")
            }
            return .json(history.points(range, since: since))
        case "/api/freshness": return .json(try overview.freshness())
        case "/api/slow": return .json(try overview.slowCommands())
        case "/api/clients": return .json(try overview.clients())
        case "/api/keys": return try entries.keys(request)
        case "/api/entry": return try entries.entry(request)
        case "/api/query": return try queries.page(request)
        case "/api/explain": return try queries.explanation(request)
        case "/api/indexes": return try queries.indexes(request)
        default: return Self.page(request) ?? .problem(404, "not found")
        }
    }

    /// The web pages, which are embedded in the program.
    private static let pages: [String: (type: String, bytes: [UInt8], tag: String)] = {
        var pages: [String: (type: String, bytes: [UInt8], tag: String)] = [:]
        while let page = larder_web_page_at(pages.count)?.pointee {
            let bytes = Array(UnsafeRawBufferPointer(start: page.bytes, count: page.length))
            // Good enough to distinguish versions of one file.
            let hash = StableHash.fnv1a(bytes)
            pages[String(cString: page.path)] = (String(cString: page.type), bytes, "\"\(String(hash, radix: 16))\"")
        }
        return pages
    }()

    /// Returns the response to a request for a page; nil if there is no such page.
    private static func page(_ request: HTTPRequest) -> HTTPResponse? {
        guard let page = pages[request.path] else { return nil }
        // Browsers revalidate the page with each request, so that a new version is shown at once.
        let isKnown = request.header("if-none-match") == page.tag
        return HTTPResponse(
            status: isKnown ? 304 : 200, type: page.type, isKnown ? [] : page.bytes, cache: "no-cache",
            headers: [("ETag", page.tag)])
    }

    // MARK: Changes

    private func post(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        switch request.path {
        case "/login":
            guard let cookie = access.login(request.form("token") ?? []) else { return .redirect(to: "/login?wrong=1") }
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
