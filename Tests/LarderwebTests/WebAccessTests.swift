import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the access rules, each with requests that it refuses.
@Suite struct WebAccessTests {
    /// These tests need no daemon.
    private static let away = "/nowhere/socket"

    @Test func unknownHostNamesAreRefused() throws {
        let web = try WebProcess(Self.away, ["--host", "Larder.example"])
        for host in ["localhost", "127.0.0.1:8377", "[::1]:1", "LOCALHOST", "larder.example:443"] {
            #expect(try web.get("/healthz", host: host).status == 200, "\(host)")
        }
        // The Host header of another site whose name resolves to this address (DNS rebinding).
        for host in [
            "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8377", "localhost:x", "", "[::1",
        ] {
            for path in ["/healthz", "/", "/metrics", "/api/overview"] {
                #expect(try web.get(path, host: host).status == 403, "\(host) \(path)")
            }
        }
        #expect(try web.get("/healthz", ["Host: localhost"]).status >= 400, "two names")
        #expect(try web.get("/healthz", host: nil).status >= 400, "no name")
        #expect(try web.send("GET /healthz HTTP/1.0", []).status >= 400)
    }

    @Test("pages of other sites cannot read anything") func otherSitesCannotReadAnything() throws {
        let web = try WebProcess(Self.away)
        for site in ["cross-site", "same-site"] {
            for path in ["/api/overview", "/api/keys", "/metrics", "/healthz", "/overview.js"] {
                #expect(try web.get(path, ["Sec-Fetch-Site: " + site]).status == 403, "\(site) \(path)")
            }
            #expect(try web.get("/", ["Sec-Fetch-Site: " + site]).status == 200, "other sites may link to the page")
        }
        #expect(try web.get("/overview.js", ["Sec-Fetch-Site: same-origin"]).status == 200)
        #expect(try web.get("/metrics", ["Sec-Fetch-Site: none"]).status == 200)
    }

    @Test("every reply has headers that forbid other sites to embed or read it")
    func everyReplyHasHeadersAgainstOtherSites() throws {
        let web = try WebProcess(Self.away)
        for reply in [try web.get("/"), try web.get("/metrics"), try web.get("/nothing"), try web.get("/", host: "x")] {
            let policy = try #require(reply.header("content-security-policy"))
            #expect(policy.hasPrefix("default-src 'self';") && !policy.contains("unsafe"))
            #expect(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"))
            #expect(reply.header("x-content-type-options") == "nosniff")
            #expect(reply.header("referrer-policy") == "same-origin")
            #expect(reply.header("access-control-allow-origin") == nil)
        }
        // A file that the browser has cached is not sent again.
        let style = try web.get("/style.css")
        let again = try web.get("/style.css", ["If-None-Match: " + (style.header("etag") ?? "")])
        #expect(again.status == 304 && again.body.isEmpty && !style.body.isEmpty)
        // No page uses anything that the content security policy forbids.
        for page in ["/", "/entries", "/queries", "/login"] {
            let text = try web.get(page).body
            #expect(text.contains("<main"))
            for match in text.matches(of: /<script(?<attributes>[^>]*)>(?<code>[^<]*)</) {
                #expect(match.code.isEmpty && match.attributes.contains("src=\"/"))
            }
            #expect(!text.contains("style=") && !text.contains(" on") || !text.contains(/\son\w+=/), "\(page)")
            #expect(!text.contains("http://") && !text.contains("https://"), "\(page) requests no other servers")
        }
        let preflight = try web.send(
            "OPTIONS /api/purge HTTP/1.1", ["Host: localhost", "Origin: http://evil.example"])
        #expect(preflight.status == 405 && preflight.header("access-control-allow-origin") == nil)
    }

    @Test("only larderweb's own pages can change anything") func onlyPagesOfLarderwebCanChangeAnything() throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"])
        let client = try daemon.connect()
        let body = #"{"database":"0","key":"6b"}"#
        func isKept(_ reply: WebProcess.Reply, _ status: Int = 403) throws -> Bool {
            try reply.status == status && client.call("EXISTS k") == ":1\r\n"
        }
        _ = try client.call("SET k v")
        #expect(try isKept(web.post("/api/delete", body, origin: "http://evil.example")))
        #expect(try isKept(web.post("/api/delete", body, origin: "null")))
        #expect(try isKept(web.post("/api/delete", body, origin: "http://localhost:1")))
        #expect(try isKept(web.post("/api/delete", body, origin: nil, site: "cross-site")))
        #expect(try isKept(web.post("/api/delete", body, origin: nil, site: "same-site")))
        #expect(try isKept(web.post("/api/delete", body, ["Origin: http://localhost"])), "two origins")
        // Content types that a form of another site can send without a preflight request.
        for type in [
            "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx",
        ] {
            #expect(try isKept(web.post("/api/delete", body, type: type), 415))
        }
        #expect(try isKept(web.post("/api/delete", body, type: nil), 415))
        #expect(try isKept(web.get("/api/delete?database=0&key=6b"), 404))
        #expect(try web.post("/api/delete", body).body == #"{"done":true}"#)
        #expect(try client.call("EXISTS k") == ":0\r\n")
        // Clients such as curl send no Origin header.
        _ = try client.call("SET k v")
        #expect(try web.post("/api/delete", body, origin: nil, site: nil).status == 200)
    }

    @Test func changesAreRefusedWithoutTheOptionAllowChanges() throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath)
        let client = try daemon.connect()
        _ = try client.call("SET k v")
        for (path, body) in [
            ("delete", #"{"database":"0","key":"6b"}"#), ("policy", #"{"database":"0","key":"6b","policy":"high"}"#),
            ("purge", #"{"database":"0","confirm":"0"}"#), ("purge", #"{"database":"0","tag":"t","confirm":"0"}"#),
        ] {
            let reply = try web.post("/api/" + path, body)
            #expect(reply.status == 403 && reply.body.contains("--allow-changes"))
        }
        #expect(try client.call("EXISTS k") == ":1\r\n")
    }

    // MARK: The token

    private static let token = "correct-horse-battery"

    private func tokenFile(_ place: TemporaryDirectory, mode: mode_t = 0o600) throws -> String {
        let path = place.path + "/token"
        try Files.write(path, Array((Self.token + "\n").utf8))
        chmod(path, mode)
        return path
    }

    @Test func requestsWithoutTheTokenAreRefused() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let web = try WebProcess(Self.away, ["--token-file", try tokenFile(place), "--allow-changes"])
        for path in ["/metrics", "/api/overview", "/api/keys", "/api/entry?key=k", "/overview.js", "/nothing"] {
            let reply = try web.get(path)
            #expect(reply.status == 401 && reply.header("www-authenticate") == "Bearer realm=\"larderweb\"", "\(path)")
            for wrong in [
                "Authorization: Bearer wrong", "Authorization: Bearer " + Self.token + "x", "Authorization: Bearer ",
                "Authorization: Basic " + Self.token, "Cookie: larderweb=" + Self.token, "Cookie: larderweb=",
                "Authorization: Bearer " + Self.token.dropLast(),
            ] { #expect(try web.get(path, [wrong]).status == 401, "\(path) \(wrong)") }
        }
        #expect(try web.post("/api/purge", #"{"database":"0","confirm":"0"}"#).status == 401)
        #expect(try web.get("/healthz").status == 200)
        for page in ["/", "/entries", "/queries"] { #expect(try web.get(page).header("location") == "/login") }
        #expect(try web.get("/metrics", ["Authorization: Bearer " + Self.token]).body.contains("larder_up 0"))
        #expect(!web.process.errors.contains(Self.token))
    }

    @Test("after a login, a browser does not send the token again") func aBrowserSendsTheTokenOnlyAtTheLogin() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let web = try WebProcess(Self.away, ["--token-file", try tokenFile(place)])
        func login(_ form: String, origin: String? = "http://localhost") throws -> WebProcess.Reply {
            try web.post("/login", form, type: "application/x-www-form-urlencoded", origin: origin)
        }
        for wrong in ["", "token=", "token=wrong", "token=\(Self.token)&token=\(Self.token)", "token=%zz", "x=1"] {
            let reply = try login(wrong)
            #expect(reply.header("location") == "/login?wrong=1" && reply.header("set-cookie") == nil, "\(wrong)")
        }
        #expect(try login("token=" + Self.token, origin: "http://evil.example").status == 403)
        let cookie = try #require(try login("token=" + Self.token).header("set-cookie"))
        #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains(Self.token))
        let session = "Cookie: " + cookie.prefix { $0 != ";" }
        #expect(try web.get("/metrics", [session]).status == 200)
        #expect(try web.get("/", ["Cookie: other=1; " + session.dropFirst(8)]).status == 200)
        #expect(try web.get("/metrics", [#"Cookie: a=b"c; d="e; "# + session.dropFirst(8)]).status == 200)
        #expect(try web.get("/metrics", [session, session]).status == 401, "two session cookies are ambiguous")
        #expect(try web.post("/logout", "", type: nil, [session]).status == 303)
        #expect(try web.get("/metrics", [session]).status == 401)
    }

    @Test func listeningForOtherMachinesNeedsAToken() throws {
        let place = try TemporaryDirectory(inMemory: true)
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
            let (end, _, errors) = try WebProcess.run(["--listen", address])
            #expect(end == .exited(2) && errors.contains("--token-file"), "\(errors)")
        }
        let web = try WebProcess(
            Self.away, ["--token-file", try tokenFile(place), "--host", "x"], listen: "0.0.0.0:0")
        #expect(web.address.hasPrefix("http://0.0.0.0:"))
        let (end, _, errors) = try WebProcess.run(["--token-file", try tokenFile(place, mode: 0o644)])
        #expect(end == .exited(2) && errors.contains("chmod 640"))
        try Files.write(place.path + "/token", Array("short\n".utf8))
        chmod(place.path + "/token", 0o600)
        #expect(try WebProcess.run(["--token-file", place.path]).end == .exited(2))
        let short = try WebProcess.run(["--token-file", place.path + "/token"])
        #expect(short.end == .exited(2) && short.errors.contains("16") && !short.errors.contains("short\n"))
    }
}
