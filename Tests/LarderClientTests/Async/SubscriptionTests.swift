import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of subscriptions to channels, with live servers and with a scripted server that closes connections.
@Suite(.timeLimit(.minutes(10))) struct SubscriptionTests {
    /// The next `count` messages.
    private func take(_ count: Int, _ subscription: Subscription) async throws -> [ChannelMessage] {
        var messages: [ChannelMessage] = []
        for try await message in subscription {
            messages.append(message)
            if messages.count == count { break }
        }
        return messages
    }

    @Test(arguments: LiveServer.allCases)
    func messagesArriveInOrder(server: LiveServer) async throws {
        try await server.run { client in
            let news = try await client.subscribe(to: "news", "weather")
            let texts: [String] = (0..<100).map { "\($0)" }
            let channels: [String] = (0..<100).map { $0.isMultiple(of: 2) ? "news" : "weather" }
            for (text, channel) in zip(texts, channels) {
                #expect(try await client.publish(text, to: channel) == 1)
            }
            let messages = try await take(100, news)
            #expect(messages.map(\.text) == texts)
            #expect(messages.map(\.channel) == channels)
            #expect(messages.allSatisfy { $0.pattern == nil && !$0.followsGap })
            #expect(try await client.publish([0xFF], to: "nobody") == 0)
        }
    }

    @Test("subscriptions to a channel and to a pattern each get a message", arguments: LiveServer.allCases)
    func eachSubscriptionGetsItsMessages(server: LiveServer) async throws {
        try await server.run { client in
            let all = try await client.subscribe(matching: "n*")
            let one = try await client.subscribe(to: "news")
            let same = try await client.subscribe(to: "news")
            // All subscriptions share one connection. It is subscribed to the channel and to the pattern, so it
            // receives the message twice.
            #expect(try await client.publish("x", to: "news") == 2)
            let byPattern = try await take(1, all)
            #expect(byPattern.map(\.pattern) == ["n*"])
            #expect(byPattern.map(\.channel) == ["news"])
            #expect(try await take(1, one).map(\.text) == ["x"])
            #expect(try await take(1, same).map(\.text) == ["x"])
            one.cancel()
            #expect(try await client.publish("y", to: "news") == 2)
            #expect(try await take(1, same).map(\.text) == ["y"])
            #expect(try await take(1, one).isEmpty)
            same.cancel()
            // The server receives the UNSUBSCRIBE a little later.
            while try await client.publish("z", to: "news") != 1 { await Task.yield() }
            withExtendedLifetime(all) {}
        }
    }

    /// Sharded channels have separate names: neither other channels nor patterns receive their messages.
    @Test(arguments: LiveServer.allCases)
    func shardedChannelsAreSeparateFromOthers(server: LiveServer) async throws {
        try await server.run { client in
            let all = try await client.subscribe(matching: "*")
            let plain = try await client.subscribe(to: "news")
            let sharded = try await client.subscribe(toSharded: "news", "other")
            #expect(try await client.publish("a", toSharded: "news") == 1)
            #expect(try await client.publish("b", to: "news") == 2)
            #expect(try await client.publish([1], toSharded: "other") == 1)
            let messages = try await take(2, sharded)
            #expect(messages.map(\.channel) == ["news", "other"])
            #expect(messages.map(\.payload) == [Array("a".utf8), [1]])
            #expect(try await take(1, plain).map(\.text) == ["b"])
            #expect(try await take(1, all).map(\.text) == ["b"])
            sharded.cancel()
            while try await client.publish("c", toSharded: "news") != 0 { await Task.yield() }
            withExtendedLifetime((all, plain)) {}
        }
    }

    @Test(arguments: LiveServer.allCases)
    func aReleasedSubscriptionIsCancelled(server: LiveServer) async throws {
        try await server.run { client in
            do {
                let news = try await client.subscribe(to: "news")
                #expect(try await client.publish("x", to: "news") == 1)
                withExtendedLifetime(news) {}
            }
            while try await client.publish("y", to: "news") != 0 { await Task.yield() }
            // The last subscription's end has closed the connection, so the next subscription opens a new one.
            let again = try await client.subscribe(to: "news")
            #expect(try await client.publish("z", to: "news") == 1)
            #expect(try await take(1, again).map(\.text) == ["z"])
        }
    }

    @Test(arguments: LiveServer.allCases)
    func concurrentSubscribingAndCancellingIsConsistent(server: LiveServer) async throws {
        try await server.run(.init(timeoutMilliseconds: 60_000)) { client in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<8 {
                    group.addTask {
                        for step in 0..<25 {
                            let subscription = try await client.subscribe(to: "c\(step % 3)")
                            try await client.publish("\(task).\(step)", to: "c\(step % 3)")
                            // The subscription must receive this task's message, which was published after subscribing.
                            var isReceived = false
                            for try await message in subscription where message.text == "\(task).\(step)" {
                                isReceived = true
                                break
                            }
                            #expect(isReceived)
                            subscription.cancel()
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test(arguments: LiveServer.allCases)
    func cancellationAndClosingEndTheWaitForAMessage(server: LiveServer) async throws {
        try await server.run { client in
            let news = try await client.subscribe(to: "news")
            let waiting = Task { try await take(1, news) }
            for _ in 0..<50 { await Task.yield() }
            waiting.cancel()
            #expect(try await waiting.value.isEmpty)
            try await client.publish("x", to: "news")
            #expect(try await take(1, news).map(\.text) == ["x"])
            let second = Task { try await take(1, news) }
            for _ in 0..<50 { await Task.yield() }
            client.close()
            #expect(try await second.value.isEmpty)
            await #expect(throws: LarderClientError.self) { try await client.subscribe(to: "news") }
        }
    }

    @Test("a cancelled subscription does not end another one that is being made")
    func cancelledSubscribing() async throws {
        try await LiveServer.larderd.run { client in
            for _ in 0..<60 {
                let cancelled = Task { try await client.subscribe(to: "a") }
                let other = Task { try await client.subscribe(to: "b") }
                try await Task.sleep(for: .microseconds(.random(in: 0...1_000)))
                cancelled.cancel()
                _ = try? await cancelled.value
                let subscription = try await other.value
                while try await client.publish("text", to: "b") == 0 { await Task.yield() }
                #expect(try await take(1, subscription).map(\.text) == ["text"])
            }
        }
    }

    @Test func cancelledWaitsForMessagesUseNoMemory() async throws {
        let buffer = MessageBuffer(PendingMessages(max: 3))
        for _ in 0..<100 {
            let waiting = Task { try await buffer.next() }
            while buffer.takerCount == 0 { await Task.yield() }
            waiting.cancel()
            #expect(try await waiting.value == nil)
        }
        #expect(buffer.takerCount == 0)
    }

    @Test func aFullBufferDropsTheOldestMessagesAndReportsAGap() async throws {
        let buffer = MessageBuffer(PendingMessages(max: 3))
        for number in 0..<5 {
            buffer.change { $0.add(ChannelMessage(channel: "c", pattern: nil, payload: [UInt8(number)])) }
        }
        let first = try await buffer.next()
        #expect(first?.payload == [2])
        #expect(first?.followsGap == true)
        let second = try await buffer.next()
        #expect(second?.payload == [3])
        #expect(second?.followsGap == false)
        buffer.connectionWasLost()
        buffer.change { $0.add(ChannelMessage(channel: "c", pattern: nil, payload: [5])) }
        buffer.finish(nil)
        #expect(try await buffer.next()?.followsGap == false)
        #expect(try await buffer.next()?.followsGap == true)
        #expect(try await buffer.next() == nil)
    }

    /// The scripted server sends a message on each new connection, and then closes the connection, except the last one.
    @Test func aReconnectionSubscribesAgainAndReportsAGap() async throws {
        let server = try FakeServer { request in
            let number = request.connection
            switch request.name {
            case "SUBSCRIBE", "SSUBSCRIBE":
                return .text(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
            case "ECHO":
                let message = Array(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n\(number)\r\n".utf8)
                let bytes = AsyncClientTests.bulk(request.words[1]) + message
                return number < 3 ? .last(bytes) : .bytes(bytes)
            default: return .standard
            }
        }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        // Connection 0 is the client's connection for calls, so the first one for subscriptions has number 1.
        let subscription = try await client.subscribe(to: "c")
        let messages = try await take(3, subscription)
        #expect(messages.map(\.text) == ["1", "2", "3"])
        #expect(messages.map(\.followsGap) == [false, true, true])
    }

    /// After the daemon was killed and restarted, a successful call implies that subscriptions are restored.
    @Test func callsWaitForSubscriptionsAfterARestart() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        var daemon = try DaemonProcess(in: place)
        let client = try await LarderClient.connect(
            socketPath: daemon.socketPath,
            options: .init(timeoutMilliseconds: 60_000, reconnectPatienceMilliseconds: 60_000))
        let news = try await client.subscribe(to: "news")
        try await client.publish("0", to: "news")
        #expect(try await take(1, news).map(\.text) == ["0"])
        for round in 1...4 {
            daemon.kill()
            // While the daemon is down, this call makes the client try to connect. Each failure lengthens the back-off.
            let early = Task { try await client.publish("early", to: "news") }
            for _ in 0..<round * 20 { await Task.yield() }
            daemon = try DaemonProcess(in: place)
            _ = try? await early.value
            while try await client.cache(of: Int.self).contains("k") { nap() }
            #expect(try await client.publish("\(round)", to: "news") == 1)
            var message = try await take(1, news).first
            #expect(message?.followsGap == true)
            while let text = message?.text, text == "early" { message = try await take(1, news).first }
            #expect(message?.text == "\(round)")
        }
        client.close()
    }

    @Test func aRefusedSubscriptionIsAnError() async throws {
        let server = try AsyncClientTests.server { request in
            request.name == "SUBSCRIBE" ? .text("-NOPERM no\r\n") : nil
        }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let error = await #expect(throws: LarderClientError.self) { try await client.subscribe(to: "c") }
        #expect(error?.serverText == "NOPERM no")
        server.waitForEnd(ofConnection: 1)
    }
}
