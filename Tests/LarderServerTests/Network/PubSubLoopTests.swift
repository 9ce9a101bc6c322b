import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of publish and subscribe over sockets and several event loops.
@Suite struct PubSubLoopTests {
    private static func count(_ bytes: [UInt8]) -> Int {
        bytes.first == UInt8(ascii: ":")
            ? Int(String(decoding: bytes.dropFirst().dropLast(2), as: UTF8.self)) ?? -1 : -1
    }

    /// Every subscriber gets every message. The messages of one publisher arrive in order.
    @Test(arguments: [1, 2, 4])
    func everySubscriberGetsEveryMessageInOrder(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        let subscribers = try (0..<6).map { _ in try server.connect() }
        for (index, subscriber) in subscribers.enumerated() {
            if index % 2 == 0 { _ = try subscriber.call("HELLO 3") }
            _ = try subscriber.call(index % 3 == 0 ? "PSUBSCRIBE chan*" : "SUBSCRIBE channel")
        }
        let (publishers, messages) = (4, 400)
        let failures = Recorder<String>()
        let threads = (0..<publishers).map { publisher in
            WorkThread(name: "publisher") {
                do {
                    let client = try server.connect()
                    // Send batches, so that many messages are pending at the same time.
                    for batch in stride(from: 0, to: messages, by: 50) {
                        try client.send(
                            (batch..<(batch + 50)).flatMap { encodeRequest("PUBLISH channel \(publisher):\($0)") })
                        for reply in try client.receive(50) where Self.count(reply) != 6 {
                            failures.add(String(decoding: reply, as: UTF8.self))
                        }
                    }
                } catch {
                    failures.add("\(error)")
                }
            }
        }
        for subscriber in subscribers {
            var next = [Int](repeating: 0, count: publishers)
            for message in try subscriber.receive(publishers * messages) {
                let payload = String(decoding: message, as: UTF8.self).split(separator: "\r\n").last ?? ""
                let numbers = payload.split(separator: ":").compactMap { Int($0) }
                guard numbers.count == 2, numbers[0] < publishers else {
                    Issue.record("not a message: \(payload)")
                    return
                }
                #expect(numbers[1] == next[numbers[0]])
                next[numbers[0]] += 1
            }
            #expect(next == Array(repeating: messages, count: publishers))
        }
        for thread in threads { thread.join() }
        #expect(failures.all == [])
    }

    /// Once a publisher has its reply, its message reaches each subscriber before anything that is sent to that
    /// subscriber later.
    @Test("when PUBLISH replies, each subscriber gets the message before anything else", arguments: [2, 4])
    func messagesAreSentBeforeThePublishersReply(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        let (subscriber, publisher) = (try server.connect(), try server.connect())
        _ = try subscriber.call("SUBSCRIBE channel")
        for round in 0..<500 {
            #expect(try publisher.call("PUBLISH channel \(round)") == ":1\r\n")
            try subscriber.send(["PING"])
            let replies = try subscriber.receive(2).map { String(decoding: $0, as: UTF8.self) }
            #expect(replies == [Wire.bulks("message", "channel", "\(round)"), Wire.bulks("pong", "")])
        }
    }

    /// After the reply to the last UNSUBSCRIBE, only replies arrive.
    @Test("no message arrives after the reply to the last UNSUBSCRIBE", arguments: [2, 4])
    func noMessageArrivesAfterUnsubscribing(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        let isOver = Guarded(false)
        let publishers = (0..<2).map { _ in
            WorkThread(name: "publisher") {
                guard let client = try? server.connect() else { return }
                while !isOver.value { _ = try? client.call("PUBLISH channel x") }
            }
        }
        let subscriber = try server.connect()
        var messages = 0
        for _ in 0..<300 {
            try subscriber.send(["SUBSCRIBE", "channel"])
            try subscriber.send(["UNSUBSCRIBE", "channel"])
            try subscriber.send(["PING"])
            #expect(try subscriber.receive().count > 0)
            while true {
                let reply = String(decoding: try subscriber.receive(), as: UTF8.self)
                guard reply.contains("\r\nmessage\r\n") else {
                    #expect(reply.contains("unsubscribe"))
                    break
                }
                messages += 1
            }
            #expect(String(decoding: try subscriber.receive(), as: UTF8.self) == "+PONG\r\n")
        }
        isOver.value = true
        for publisher in publishers { publisher.join() }
    }

    /// A subscriber that does not read is disconnected at the limit. Other subscribers still get their messages. The
    /// limit is set at the start or while clients are connected, or it is a soft limit with a period of 0 seconds.
    @Test(
        arguments: [1, 2],
        [
            (nil, "the limit is 2097152"), ("pubsub 2mb 0 0", "the limit is 2097152"),
            ("pubsub 0 2mb 0", "more than 2097152 bytes of messages were unread for 0 s"),
        ])
    func aSubscriberThatDoesNotReadIsDisconnected(_ threads: Int, _ bound: (setting: String?, line: String)) throws {
        var limits = Limits()
        if bound.setting == nil { limits.subscriberBytesMax = 2 << 20 }
        let server = try InProcessServer(threads: threads, limits: limits)
        defer { server.stop() }
        let (silent, reader, publisher) = (try server.connect(), try server.connect(), try server.connect())
        _ = try silent.call("SUBSCRIBE channel")
        _ = try reader.call("SUBSCRIBE channel")
        if let setting = bound.setting {
            #expect(
                try publisher.call(["CONFIG", "SET", "client-output-buffer-limit", setting]) == Array("+OK\r\n".utf8))
        }
        let payload = String(repeating: "x", count: 64 << 10)
        var copies = 2
        var rounds = 0
        while copies == 2, rounds < 100_000 {
            copies = Self.count(try publisher.call(["PUBLISH", "channel", payload]))
            #expect(try reader.receive().count > payload.utf8.count)
            rounds += 1
        }
        #expect(copies == 1)
        #expect(rounds > 2 << 20 / (64 << 10))
        #expect(server.logLines.line(containing: bound.line) != nil)
        #expect(try server.connectedClients() == 3)
    }
}
