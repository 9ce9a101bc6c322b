import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that larderweb keeps running with any input, and that other clients do not wait.
@Suite struct WebHostileTests {
    @Test func invalidPathsAndBodiesGetAnErrorStatus() throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"])
        for path in [
            "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/%00", "/\u{FF}", "/style.css%00.html",
            "/" + String(repeating: "a/", count: 3_000), "/api", "/api/", "/api/overview/", "/chart", "/chart/",
        ] {
            let reply = try web.get(path)
            #expect((400...499).contains(reply.status) && !reply.body.contains("root:"), "\(path.prefix(40))")
        }
        for query in [
            "?key", "?key=%", "?key=%f", "?key=%gg", "?key=a&key=b", "?database=..&key=a", "?database=99&key=a",
            "?database=%00&key=a", "?" + String(repeating: "a&", count: 40), "?key=%ff", "?database=%ff&key=a",
        ] { #expect((400...499).contains(try web.get("/api/entry" + query).status), "\(query.prefix(30))") }
        for query in ["?cursor=x", "?cursor=-1", "?cursor=77", "?database=A%20B", "?count=-1", "?count=x", "?count=0"] {
            #expect((400...499).contains(try web.get("/api/keys" + query).status), "\(query)")
        }
        for body in [
            "", "{", "[]", "null", "1", "\u{0}", #"{"database":1}"#, #"{"database":"0"}"#,
            #"{"database":"0","key":"6"}"#,
            #"{"database":"0","key":"zz"}"#, String(repeating: "[", count: 60_000), #"{"database":"0","key":null}"#,
        ] {
            for path in ["/api/delete", "/api/policy", "/api/purge"] {
                #expect((400...499).contains(try web.post(path, body).status), "\(path) \(body.prefix(30))")
            }
        }
        for line in [
            "GET", "GET / HTTP/9.9", "get / HTTP/1.1", "PUT / HTTP/1.1", "DELETE /api/purge HTTP/1.1", "\u{1}",
        ] {
            let status = try web.send(line, ["Host: localhost"]).status
            #expect(status == 0 || status >= 400, "\(line)")
        }
        #expect(try web.get("/healthz").body == #"{"status":"ok","daemon":"up"}"#)
    }

    /// A proxy in front of larderweb must see the same requests. A request that two programs may parse differently is
    /// refused, and the connection is closed.
    @Test func ambiguousRequestHeadersAreRefused() throws {
        let web = try WebProcess("/nowhere/socket", ["--allow-changes"])
        let behind = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for (lines, status) in [
            (["Host: localhost", "Content-Length: 2", "Content-Length: 60"], 400),
            (["Host: localhost", "Content-Length: 60", "Content-Length: 60"], 400),
            (["Host: localhost", "Content-Length: 2", "Transfer-Encoding: chunked"], 400),
            (["Host: localhost", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], 400),
            (["Host: localhost", "Transfer-Encoding: gzip"], 501),
            (["Host: localhost", "Transfer-Encoding: chunked, identity"], 501),
            (["Host: localhost", "Transfer-Encoding: xchunked"], 501),
            ([], 400), (["Host: localhost", "Host: localhost"], 400), (["Host : localhost"], 400),
            (["Host: localhost", "A b: c"], 400), (["Host: localhost", "A: b\rc"], 400),
            (["Host: localhost", "A: b\u{1}c"], 400),
        ] {
            let head = (["POST /api/purge HTTP/1.1"] + lines).map { $0 + "\r\n" }.joined()
            let client = try SocketClient(web.socketPath)
            try client.send(Array((head + "\r\n{}" + behind).utf8))
            let all = try client.receiveToEnd()
            let reply = WebProcess.reply(all)
            #expect(reply.status == status, "\(lines): \(reply)")
            #expect(reply.header("content-security-policy") != nil && reply.header("connection") == "close")
            #expect(String(decoding: all, as: UTF8.self).split(separator: "HTTP/1.1 ").count == 1, "\(lines)")
        }
    }

    @Test func repeatedParametersAreRefused() throws {
        let web = try WebProcess("/nowhere/socket")
        for (query, status) in [("range=day&since=0", 200), ("range=day&range=day", 400), ("range=day&x=1&x=2", 400)] {
            #expect(try web.get("/api/history?" + query).status == status, "\(query)")
        }
    }

    @Test func theLimitsOfARequestHeadMatchTheDocs() throws {
        let web = try WebProcess("/nowhere/socket", ["--allow-changes"])
        func long(_ count: Int) -> String { String(repeating: "x", count: count) }
        #expect(try web.get("/" + long(16_000)).status == 404)
        for count in [16_500, 30_000, 32_000, 60_000] {
            #expect(try web.get("/" + long(count)).status == 414, "\(count)")
        }
        #expect(try web.get("/healthz", ["X-Long: " + long(16_000)]).status == 200)
        for count in [16_500, 32_000] { #expect(try web.get("/healthz", ["X-Long: " + long(count)]).status == 431) }
        #expect(try web.get("/api/entry?" + String(repeating: "a&", count: 1_000)).status == 400)
        // libmicrohttpd has memory for about 1,950 parameters, and then closes the connection without a response.
        for count in [1_100, 1_949, 2_000, 8_000] {
            for parameter in ["a&", "&"] {
                let reply = try web.get("/api/entry?" + String(repeating: parameter, count: count))
                #expect(reply.status == 431 && reply.header("x-frame-options") == "DENY", "\(count) \(parameter)")
                #expect(reply.body.contains("the request has more than 1024 parameters"), "\(reply.body)")
            }
        }
        // The limit for bodies also applies to a chunked body, whose length is not known in advance.
        let piece = "4000\r\n" + String(repeating: "y", count: 0x4000) + "\r\n"
        let head = "POST /api/purge HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        let reply = try web.exchange(Array((head + String(repeating: piece, count: 5) + "0\r\n\r\n").utf8))
        #expect(reply.status == 413 && reply.body.contains("65536 bytes"), "\(reply)")
    }

    @Test func tooLargeRequestsAreRefused() throws {
        let web = try WebProcess("/nowhere/socket", ["--allow-changes"])
        let long = String(repeating: "x", count: 40_000)
        #expect([0, 414, 431, 413].contains(try web.get("/" + long).status))
        #expect([0, 431, 413].contains(try web.get("/", ["X-Long: " + long]).status))
        let said = try web.exchange(
            Array("POST /api/purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n".utf8))
        #expect(said.status == 413)
        let odd = try web.exchange(
            Array("POST /api/purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\nConnection: close\r\n\r\n".utf8))
        #expect([0, 400, 413].contains(odd.status))
        // The limit for bodies also applies to a chunked body, whose length is not known in advance.
        let piece = "4000\r\n" + String(repeating: "y", count: 0x4000) + "\r\n"
        let head = "POST /api/purge HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        let client = try SocketClient(web.socketPath)
        try client.send(Array(head.utf8))
        // larderweb closes the connection, so that writing to it soon fails.
        #expect(throws: SocketClient.Failure.self) { for _ in 0..<2_000 { try client.send(Array(piece.utf8)) } }
        #expect(try web.get("/healthz").status == 200)
    }

    /// An endless request does not keep its connection open, even if bytes arrive regularly.
    @Test func slowRequestsAreClosedAfterTheTimeout() async throws {
        let web = try WebProcess("/nowhere/socket", ["--request-timeout", "300ms"])
        let client = try SocketClient(web.socketPath)
        try client.send(Array("GET / HTTP/1.1\r\nHost: localhost\r\n".utf8))
        var count = 0
        await eventually {
            count += 1
            return (try? client.send(Array("x".utf8))) == nil
        }
        // With more bytes, the connection would have been closed because its head is too long.
        #expect(count < 5_000)
        // A connection that sends nothing is closed, too.
        #expect(try SocketClient(web.socketPath).receiveToEnd() == [])
        #expect(try web.get("/healthz").status == 200)
    }

    /// With few descriptors, larderweb accepts fewer connections, so that it can serve all of them.
    @Test func withFewDescriptorsFewerConnectionsAreAccepted() async throws {
        let web = try WebProcess(
            "/nowhere/socket", wrapper: ["sh", "-c", "ulimit -S -n 24; ulimit -H -n 56; exec \"$@\"", "sh"])
        #expect(web.process.errors.contains("56, allows only 4 of 64 connections"), "\(web.process.errors)")
        var kept = try (0..<20).map { _ in try SocketClient(web.socketPath) }
        kept.removeAll()
        await eventually { (try? web.get("/healthz").status) == 200 }
    }

    private static let request = Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)

    private func isAnswered(_ client: SocketClient) -> Bool {
        var entry = pollfd(fd: client.descriptor, events: Int16(POLLIN), revents: 0)
        var byte: UInt8 = 0
        return poll(&entry, 1, 60_000) > 0 && recv(client.descriptor, &byte, 1, Int32(MSG_PEEK)) == 1
    }

    /// Whether the connection was closed. Discards received bytes.
    private func hasEnded(_ client: SocketClient) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        var count = 1
        while count > 0 { count = recv(client.descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT)) }
        return count == 0
    }

    @Test func theNumberOfConnectionsIsLimited() async throws {
        let web = try WebProcess("/nowhere/socket", ["--max-connections", "3"])
        let kept = try (0..<3).map { _ in try SocketClient(web.socketPath) }
        for client in kept {
            try client.send(Self.request)
            #expect(isAnswered(client))
        }
        #expect(!kept.contains(where: hasEnded))
        // A new connection replaces one that is idle.
        await eventually { (try? web.get("/healthz").status) == 200 }
        await eventually { kept.contains(where: hasEnded) }
    }

    /// Connections that never send a complete request do not keep others out, and this is logged once.
    @Test func slowRequestsDoNotBlockOthers() async throws {
        let web = try WebProcess("/nowhere/socket", ["--max-connections", "8", "--request-timeout", "1h"])
        var slow: [SocketClient] = []
        for _ in 0..<10 {
            for _ in 0..<8 {
                let client = try SocketClient(web.socketPath)
                try? client.send(Array("GET / HTTP/1.1\r\nHo".utf8))
                slow.append(client)
            }
            await eventually { (try? web.get("/healthz").status) == 200 }
        }
        await eventually { hasEnded(slow[0]) }
        let lines = web.process.errors.split(separator: "\n").filter { $0.contains("(--max-connections)") }
        #expect(lines.count == 1, "\(web.process.errors)")
    }
}
