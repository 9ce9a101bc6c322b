import LarderPlatform
import LarderServices

/// Checks whether requests are allowed, by host name, by the site that sends them, and by token.
///
/// Thread-safe: immutable, except for the sessions and the log of wrong tokens, which have locks.
final class AccessRules: Sendable {
    /// The host names that browsers may use, in lower case and without a port.
    private let hosts: Set<String>
    /// The token that allows all requests; nil if all clients that can connect are allowed.
    private let token: [UInt8]?
    /// The sessions of browsers, in the order of their logins.
    private let sessions = Locked<[(name: [UInt8], end: Int64)]>([])
    private let log: Log
    private let wrongTokenLines = Locked(LineRate(milliseconds: 10_000))

    private static let cookie = "larderweb"
    /// The paths allowed without a token: the login page with its files, and the health check.
    private static let open: Set<String> = ["/healthz", "/login", "/style.css", "/theme.js", "/icon.svg"]
    private static let pages: Set<String> = ["/", "/entries", "/queries"]

    init(hosts: Set<String>, token: [UInt8]?, _ log: Log) {
        self.log = log
        self.hosts = hosts.union(["localhost", "127.0.0.1", "[::1]"])
        self.token = token
    }

    var asksForToken: Bool { token != nil }

    /// Returns the response if a request is refused; otherwise nil.
    func refusal(_ request: HTTPRequest) -> HTTPResponse? {
        guard let host = request.header("host"), let name = Self.name(of: host), hosts.contains(name) else {
            // Refuse unknown names, because the name of another site may resolve to this address (DNS rebinding).
            return .problem(403, "unknown host name: use --host to add it")
        }
        guard ["GET", "HEAD", "POST"].contains(request.method) else {
            return .problem(405, "the method must be GET or POST", headers: [("Allow", "GET, HEAD, POST")])
        }
        if let problem = crossSiteProblem(request, host) { return .problem(403, problem) }
        guard token != nil, !Self.open.contains(request.path), !isKnown(request) else { return nil }
        if request.method != "POST", Self.pages.contains(request.path) { return .redirect(to: "/login") }
        return .problem(401, "a token is required", headers: [("WWW-Authenticate", "Bearer realm=\"larderweb\"")])
    }

    /// Returns the name in a Host header, without the port and in lower case; nil if the header is malformed.
    private static func name(of host: String) -> String? {
        let host = host.lowercased()
        let end =
            host.hasPrefix("[")
            ? host.firstIndex(of: "]").map(host.index(after:)) : host.firstIndex(of: ":") ?? host.endIndex
        guard let end, case let port = host[end...] else { return nil }
        let isPort = port.first == ":" && UInt16(port.dropFirst()) != nil
        return port.isEmpty || isPort ? String(host[..<end]) : nil
    }

    /// Returns why a request from another site is refused; nil if it is allowed.
    private func crossSiteProblem(_ request: HTTPRequest, _ host: String) -> String? {
        let site = request.header("sec-fetch-site")
        if request.method == "POST" {
            let origins = ["http://", "https://"].map { $0 + host.lowercased() }
            let isOwn =
                (!request.hasHeader("origin") || origins.contains(request.header("origin")?.lowercased() ?? ""))
                && (!request.hasHeader("sec-fetch-site") || site == "same-origin")
            return isOwn ? nil : "pages of other sites cannot change anything here"
        }
        // Other sites may link to pages, but not read data.
        let isPage = Self.pages.contains(request.path) || request.path == "/login"
        guard !isPage, let site, site != "same-origin", site != "none" else { return nil }
        return "not available to pages of other sites"
    }

    private func isKnown(_ request: HTTPRequest) -> Bool {
        if let text = request.header("authorization") {
            let words = text.split(separator: " ", maxSplits: 1)
            return words.count == 2 && words[0].lowercased() == "bearer" && isToken(Array(words[1].utf8))
        }
        return request.cookie(Self.cookie).map(hasSession) ?? false
    }

    private func isToken(_ text: [UInt8]) -> Bool {
        guard let token else { return false }
        if Self.isEqual(text, token) { return true }
        if let skipped = wrongTokenLines.withLock({ $0.line(at: MonotonicClock.milliseconds()) }) {
            log.warning("a wrong token was sent" + LineRate.rest(skipped, "wrong tokens"))
        }
        return false
    }

    /// Compares texts. The time depends only on their lengths, so that it does not reveal how many bytes were right.
    @inline(never)
    private static func isEqual(_ text: [UInt8], _ secret: [UInt8]) -> Bool {
        guard !secret.isEmpty else { return false }
        var difference = text.count ^ secret.count
        for (index, byte) in text.enumerated() { difference |= Int(byte ^ secret[index % secret.count]) }
        return difference == 0
    }

    // MARK: Sessions

    /// The lifetime of a session in seconds: 12 hours.
    private static let sessionSeconds = 43_200
    private static let sessionsMax = 64

    /// Begins a session if the token is right: after that, the browser sends the random name of its session instead of
    /// the token.
    /// - Returns: the value of the header Set-Cookie for the session; nil if the token is wrong.
    func login(_ text: [UInt8]) -> String? {
        guard isToken(text) else { return nil }
        var random = SystemRandomNumberGenerator()
        let name = HexText.text((0..<32).map { _ in UInt8.random(in: 0...255, using: &random) })
        let end = MonotonicClock.milliseconds() + Int64(Self.sessionSeconds) * 1000
        // Drop the oldest sessions if there are too many.
        sessions.withLock { $0 = $0.suffix(Self.sessionsMax - 1) + [(Array(name.utf8), end)] }
        return Self.setCookie(name, seconds: Self.sessionSeconds)
    }

    private func hasSession(_ name: [UInt8]) -> Bool {
        sessions.withLock {
            let now = MonotonicClock.milliseconds()
            $0.removeAll { $0.end <= now }
            return $0.reduce(false) { Self.isEqual(name, $1.name) || $0 }
        }
    }

    /// Ends the request's session.
    /// - Returns: the value of the header Set-Cookie that removes the cookie.
    func logout(_ request: HTTPRequest) -> String {
        if let name = request.cookie(Self.cookie) {
            sessions.withLock { $0.removeAll { Self.isEqual(name, $0.name) } }
        }
        return Self.setCookie("", seconds: 0)
    }

    private static func setCookie(_ value: String, seconds: Int) -> String {
        "\(cookie)=\(value); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(seconds)"
    }
}
