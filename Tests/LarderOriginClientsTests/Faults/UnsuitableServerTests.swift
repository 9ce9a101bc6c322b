import LarderOriginClients
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests with servers that are not Redis servers, or whose settings do not match the address.
@Suite struct UnsuitableServerTests {
    private static func error(_ address: OriginAddress, _ limits: OriginLimits = OriginLimits()) async -> OriginError? {
        let origin = RedisOrigin(address, limits: limits)
        defer { origin.close() }
        return await origin.error("a")
    }

    private static func error(
        of handler: @escaping @Sendable (FakeServer.Request) -> FakeServer.Answer,
        _ limits: OriginLimits = OriginLimits()
    ) async throws -> OriginError? {
        let server = try FakeServer(handler)
        defer { server.stop() }
        return await error(try .at(server.path), limits)
    }

    @Test(.timeLimit(.minutes(10))) func theErrorForAnUnreachableServerStatesTheReason() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        guard case .unreachable(let reason)? = await Self.error(try .at(directory.path + "/none")) else {
            return #expect(Bool(false))
        }
        #expect(reason.contains("No such file"))
        // Nothing listens at port 1 of this machine.
        guard case .unreachable? = await Self.error(try OriginAddress("redis://127.0.0.1:1")) else {
            return #expect(Bool(false))
        }
        guard case .unreachable(let name)? = await Self.error(try OriginAddress("redis://no-such-host.invalid:1"))
        else {
            return #expect(Bool(false))
        }
        #expect(name.contains("name cannot be resolved"))
    }

    @Test(
        .timeLimit(.minutes(10)),
        arguments: [
            ("-ERR unknown command 'HELLO', with args beginning with: '3'\r\n", "supports only RESP2"),
            ("-NOPROTO unsupported protocol version\r\n", "does not support RESP3"),
            ("-NOAUTH HELLO must be called with the client already authenticated\r\n", "requires a password"),
            ("-WRONGPASS invalid username-password pair or user is disabled.\r\n", "user or password is wrong"),
            ("-DENIED Redis is running in protected mode\r\n", "other machines"),
            ("-LOADING Redis is loading the dataset in memory\r\n", "loading its data"),
            ("HTTP/1.1 400 Bad Request\r\n\r\n", "is it a Redis server?"),
            ("+OK\r\n", "not that of a Redis server"),
            ("%1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n", "use redis+cluster://"),
            ("%1\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n", "sentinel"),
        ]) func theErrorForARefusedGreetingStatesTheReason(_ reply: String, _ reason: String) async throws
    {
        let error = try await Self.error { _ in .text(reply) }
        #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
    }

    @Test(.timeLimit(.minutes(10))) func theErrorForRefusedTrackingNamesTheMissingRight() async throws {
        let error = try await Self.error {
            $0.name == "HELLO"
                ? .standard : .text("-NOPERM this user has no permissions to run the 'client|tracking' command\r\n")
        }
        #expect(error?.description.contains("the right to run CLIENT TRACKING") == true)
    }

    @Test(.timeLimit(.minutes(10))) func aServerThatAcceptsNoConnectionIsUnreachableAtOnce() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/socket"
        let listener = UnixSocket.make()
        var others: [Int32] = []
        defer { for descriptor in others + [listener] { systemClose(descriptor) } }
        #expect(UnixSocket.bind(listener, to: path) == 0 && listen(listener, 0) == 0)
        // Fill the backlog.
        while true {
            let descriptor = UnixSocket.make()
            others.append(descriptor)
            #expect(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0)
            if UnixSocket.connect(descriptor, to: path) != 0 { break }
        }
        guard case .unreachable(let reason)? = await Self.error(try .at(path)) else { return #expect(Bool(false)) }
        #expect(reason.contains("temporarily unavailable"), "\(reason)")
    }

    @Test(.timeLimit(.minutes(10))) func connectingToASilentServerTimesOut() async throws {
        let limits = OriginLimits.with { $0.connect = 50 }
        guard case .unreachable(let reason)? = try await Self.error(of: { _ in .nothing }, limits) else {
            return #expect(Bool(false))
        }
        #expect(reason.contains("within 50 ms"))
    }

    @Test(.timeLimit(.minutes(10))) func thePasswordIsSentToTheServer() async throws {
        let redis = try RedisProcess(["--requirepass", "hush"])
        #expect(await Self.error(try .at(redis.socketPath))?.description.contains("requires a password") == true)
        let directory = try TemporaryDirectory(inMemory: true)
        try Files.write(directory.path + "/p", Array("hush\n".utf8))
        try Files.write(directory.path + "/w", Array("wrong\n".utf8))
        let right = try OriginAddress("unix://\(redis.socketPath)", passwordFile: directory.path + "/p")
        #expect(await Self.error(right) == nil)
        let wrong = try OriginAddress("unix://\(redis.socketPath)", passwordFile: directory.path + "/w")
        #expect(await Self.error(wrong)?.description.contains("user or password is wrong") == true)
    }

    /// A server that answers the greeting, heartbeats and markers itself, and all other requests with `reply`.
    private static func answering(_ reply: @escaping @Sendable (FakeServer.Request) -> FakeServer.Answer)
        -> @Sendable (FakeServer.Request) -> FakeServer.Answer
    {
        { request in
            switch request.name {
            case "HELLO": .standard
            case "CLIENT": .text("+OK\r\n")
            case "PING": .text("+PONG\r\n")
            case "ECHO": .text("$\(request.words[1].count)\r\n\(request.text[1])\r\n")
            default: reply(request)
            }
        }
    }

    /// A server that answers nothing more after the first request for an entry.
    private static func hanging() -> @Sendable (FakeServer.Request) -> FakeServer.Answer {
        let isHanging = Guarded(false)
        let answer = answering { _ in
            isHanging.value = true
            return .nothing
        }
        return { request in isHanging.value ? .nothing : answer(request) }
    }

    @Test(.timeLimit(.minutes(10))) func callsTimeOutAndRepeatedTimeoutsStartABackOff() async throws {
        let limits = OriginLimits.with {
            $0.call = 100
            $0.failuresBeforeRest = 3
            $0.heartbeat = 60_000
            $0.heartbeatLimit = 60_000
            $0.rest = 60_000
        }
        let server = try FakeServer(Self.hanging())
        defer { server.stop() }
        let ears = OriginEars()
        let origin = RedisOrigin(try .at(server.path), limits: limits, listener: ears)
        await origin.waitUntilBelieved()
        for _ in 0..<2 { #expect(await origin.error("a") == .timedOut(milliseconds: 100)) }
        #expect(ears.invalidated.isEmpty)
        await #expect(throws: OriginError.timedOut(milliseconds: 100)) { try await origin.write("w", "1") }
        #expect(ears.invalidated.all == ["w"], "the outcome of the write is unknown")
        // Three failures in a row.
        guard case .resting? = await origin.error("a") else { return #expect(Bool(false)) }
        #expect(origin.status().timeouts == 3)
        origin.close()
    }

    @Test(.timeLimit(.minutes(10))) func callsSucceedAgainAfterTheBackOff() async throws {
        let limits = OriginLimits.with {
            $0.call = 100
            $0.failuresBeforeRest = 1
            $0.heartbeat = 60_000
            $0.heartbeatLimit = 60_000
            $0.rest = 1
        }
        let gate = Gate(isClosed: true)
        let server = try FakeServer(
            Self.answering { request in
                gate.pass()
                return .text(request.name == "GET" ? "$1\r\nv\r\n" : ":-1\r\n")
            })
        defer { server.stop() }
        let origin = RedisOrigin(try .at(server.path), limits: limits)
        await origin.waitUntilBelieved()
        #expect(await origin.error("a") == .timedOut(milliseconds: 100))
        gate.open()
        await eventually { (try? await origin.value("a")) == "v" }
        origin.close()
    }

    @Test(.timeLimit(.minutes(10))) func closingFailsPendingAndLaterCalls() async throws {
        let server = try FakeServer(Self.hanging())
        defer { server.stop() }
        let limits = OriginLimits.with {
            $0.call = 600_000
            $0.heartbeat = 60_000
        }
        let origin = RedisOrigin(try .at(server.path), limits: limits)
        await origin.waitUntilBelieved()
        async let first = origin.error("a")
        await eventually { server.requests.contains(["PTTL", "a"]) }
        origin.close()
        #expect(await first == .closed)
        #expect(await origin.error("b") == .closed)
        await #expect(throws: OriginError.closed) { try await origin.write("w", "1") }
        await #expect(throws: OriginError.closed) { try await origin.remove(["w"]) }
        await #expect(throws: OriginError.closed) { try await origin.perform("GET w", key: "w") }
        origin.close()
    }

    @Test(.timeLimit(.minutes(10))) func callsBeyondTheQueueLimitFailAtOnce() async throws {
        let server = try FakeServer(Self.hanging())
        defer { server.stop() }
        let origin = RedisOrigin(try .at(server.path), limits: .with { ($0.callsWaiting, $0.heartbeat) = (10, 60_000) })
        await origin.waitUntilBelieved()
        let results = Recorder<OriginError?>()
        for index in 0..<11 {
            origin.read([Array("k\(index)".utf8)]) { results.add($0[0].failure) }
        }
        await eventually { results.count == 1 }
        guard case .resting(let reason)?? = results.all.first else { return #expect(Bool(false)) }
        #expect(reason.contains("10 calls are waiting"))
        origin.close()
        await eventually { results.count == 11 }
    }

    /// GET is answered, then the key changes, then PTTL is answered.
    @Test(.timeLimit(.minutes(10))) func aValueThatChangesWhileItIsReadIsNotCurrent() async throws {
        let server = try FakeServer(
            Self.answering { request in
                request.name == "GET"
                    ? .text("$1\r\nv\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n") : .text(":-1\r\n")
            })
        defer { server.stop() }
        let ears = OriginEars()
        let origin = RedisOrigin(try .at(server.path), listener: ears)
        await origin.waitUntilBelieved()
        #expect(try await origin.reading("a").stamp == nil)
        #expect(ears.invalidated.all == ["a"], "invalidated before the reply")
        #expect(try await origin.reading("b").stamp != nil)
        let both = try await origin.readMany(["a", "b"]).map { try $0.get().stamp }
        // The push after the reply to b's GET invalidates a, whose reply came before.
        #expect(both[0] == nil && both[1] != nil)
        origin.close()
    }

    /// A reply of a type that SET cannot have is not the reply to SET, and so are all later ones shifted.
    @Test(
        .timeLimit(.minutes(10)),
        arguments: [
            "?\r\n", "$-7\r\n", "*99999999999\r\n", ":x\r\n", ":1\r\n", "$1\r\nv\r\n", "_\r\n", "*0\r\n",
            "+OK\r\n+OK\r\n",
        ])
    func aMalformedOrSurplusReplyClosesTheConnection(_ text: String) async throws {
        let server = try FakeServer(Self.answering { _ in .text(text) })
        defer { server.stop() }
        let ears = OriginEars()
        let origin = RedisOrigin(try .at(server.path), listener: ears)
        await origin.waitUntilBelieved()
        let stamp = OriginStamp(part: 0, epoch: 1)
        await #expect(throws: OriginError.self) { try await origin.write("a", "1") }
        await eventually { !ears.lost.isEmpty }
        #expect(!origin.isCurrentNow(stamp))
        origin.close()
    }

    @Test(.timeLimit(.minutes(10))) func anOmittedReplyClosesTheConnectionInsteadOfShiftingLaterReplies() async throws {
        let server = try FakeServer(
            Self.answering { request in
                let isOmitted = request.text == ["GET", "omitted"] || request.text == ["PTTL", "both"]
                if isOmitted || request.text == ["GET", "both"] { return .nothing }
                return .text(request.name == "GET" ? "$1\r\n\(request.text[1])\r\n" : ":-1\r\n")
            })
        defer { server.stop() }
        let limits = OriginLimits.with { ($0.call, $0.heartbeat, $0.rest) = (200, 20, 1) }
        let origin = RedisOrigin(try .at(server.path), limits: limits)
        await origin.waitUntilBelieved()
        // In the second round, both replies about a key are missing, and the reply to a heartbeat comes in their place.
        for key in ["omitted", "both"] {
            let connections = server.connectionCount
            #expect(await origin.error(key) != nil)
            await eventually { server.connectionCount > connections }
            await eventually { (try? await origin.value("a")) != nil }
            for key in ["a", "b"] { #expect(try await origin.value(key) == key) }
        }
        origin.close()
    }

    /// Loses the replies to these requests, and to the first ECHO if it is one of them.
    @Test(
        "a lost reply never gives a caller another caller's reply", .timeLimit(.minutes(10)),
        arguments: [["LLEN a"], ["LLEN b"], ["LLEN a", "ECHO"], ["GET a", "PTTL a"], ["GET a", "PTTL a", "ECHO"]])
    func lostRepliesAreNotReplacedByOthers(_ lost: [String]) async throws {
        let losesReplies = Guarded(false)
        let losesMarker = Guarded(lost.contains("ECHO"))
        let server = try FakeServer { request in
            if losesReplies.value {
                if lost.contains(request.text.joined(separator: " ")) { return .nothing }
                let isFirstMarker =
                    request.name == "ECHO"
                    && losesMarker.with { (isFirst: inout Bool) in
                        defer { isFirst = false }
                        return isFirst
                    }
                if isFirstMarker { return .nothing }
            }
            return Self.answering { request in
                request.name == "PTTL" ? .text(":-1\r\n") : .text("$1\r\n\(request.text[1])\r\n")
            }(request)
        }
        defer { server.stop() }
        let limits = OriginLimits.with { ($0.call, $0.heartbeat, $0.heartbeatLimit) = (500, 60_000, 60_000) }
        let origin = RedisOrigin(try .at(server.path), limits: limits)
        await origin.waitUntilBelieved()
        // Any reply is right for a command that is not a read or write of an entry.
        #expect(try await origin.perform("LLEN x", key: "x").string == "x")
        losesReplies.value = true
        let answers = Recorder<(key: String, answer: String?)>()
        for key in ["a", "b", "c", "d"] {
            let words = ["LLEN", key].map { Array($0.utf8) }
            if lost[0].hasPrefix("GET") {
                origin.read([words[1]]) { results in
                    answers.add((key, (try? results[0].get())?.value.map { String(decoding: $0, as: UTF8.self) }))
                }
            } else {
                origin.perform(words, key: words[1]) { answers.add((key, (try? $0.get())?.string)) }
            }
        }
        await eventually { answers.count == 4 }
        for (key, answer) in answers.all { #expect(answer == nil || answer == key) }
        origin.close()
    }

    @Test(.timeLimit(.minutes(10))) func aServerThatRefusesMarkersIsUsedWithoutThem() async throws {
        let server = try FakeServer { request in
            if request.name == "ECHO" {
                return .text("-NOPERM this user has no permissions to run the 'echo' command\r\n")
            }
            return Self.answering { $0.name == "PTTL" ? .text(":-1\r\n") : .text("$1\r\nv\r\n") }(request)
        }
        defer { server.stop() }
        let origin = RedisOrigin(try .at(server.path))
        await origin.waitUntilBelieved()
        for _ in 0..<10 {
            #expect(try await origin.value("a") == "v")
            #expect(try await origin.perform("LLEN a", key: "a").string == "v")
        }
        #expect(server.requests.count { $0[0] == "ECHO" } <= 4, "at most one or two on each connection")
        origin.close()
    }

    @Test("only OK answers SET", .timeLimit(.minutes(10)), arguments: ["+QUEUED\r\n", "+PONG\r\n"])
    func onlyOKAnswersAWrite(_ reply: String) async throws {
        let server = try FakeServer(Self.answering { _ in .text(reply) })
        defer { server.stop() }
        let origin = RedisOrigin(try .at(server.path))
        await origin.waitUntilBelieved()
        await #expect(throws: OriginError.self) { try await origin.write("a", "1") }
        await eventually { server.connectionCount == 2 }
        origin.close()
    }

    @Test(
        "only QUEUED answers a command of a transaction", .timeLimit(.minutes(10)),
        arguments: ["+QUEUED", "+OK", "$1\r\nv"])
    func onlyQUEUEDAnswersACommandOfATransaction(_ reply: String) async throws {
        let server = try FakeServer(
            Self.answering { request in
                switch request.name {
                case "MULTI": .text("+OK\r\n")
                case "EXEC": .text("*1\r\n:1\r\n")
                default: .text(reply + "\r\n")
                }
            })
        defer { server.stop() }
        let origin = RedisOrigin(try .at(server.path))
        await origin.waitUntilBelieved()
        let result = await withCheckedContinuation { done in
            origin.perform(transaction: [["INCR", "a"].map { Array($0.utf8) }], keys: [Array("a".utf8)]) {
                done.resume(returning: $0)
            }
        }
        #expect((try? result.get())?.elements?.count == (reply == "+QUEUED" ? 1 : nil), "\(result)")
        origin.close()
    }

    @Test(.timeLimit(.minutes(10))) func aWriteInterruptedByADisconnectIsNotRepeated() async throws {
        let server = try FakeServer(Self.answering { _ in .last([]) })
        defer { server.stop() }
        let origin = RedisOrigin(try .at(server.path))
        await origin.waitUntilBelieved()
        do {
            try await origin.write("a", "1")
            Issue.record("written")
        } catch {
            guard case OriginError.interrupted = error else { return #expect(Bool(false), "\(error)") }
            #expect((error as? OriginError)?.isUncertain == true)
        }
        await eventually { server.connectionCount == 2 }
        await origin.waitUntilBelieved()
        #expect(server.requests.count { $0.first == "SET" } == 1)
        origin.close()
    }
}
