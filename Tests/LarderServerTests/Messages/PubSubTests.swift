import LarderQueries
import LarderTestSupport
import Testing

@testable import LarderServer

@Suite struct PubSubTests {
    private func message(_ channel: String, _ payload: String) -> String { Wire.bulks("message", channel, payload) }

    @Test func aMessageReachesEverySubscriberOnce() throws {
        let server = try SocketlessServer()
        let (two, three, publisher) = (server.connect(), server.connect(), server.connect())
        _ = three("HELLO 3")
        #expect(two("SUBSCRIBE a b") == subscribed("a", 1) + subscribed("b", 2))
        #expect(three("SUBSCRIBE a") == ">" + subscribed("a", 1).dropFirst())
        #expect(publisher("PUBLISH a hello") == Wire.int(2))
        #expect(two.takeSendable() == message("a", "hello"))
        #expect(three.takeSendable() == ">" + message("a", "hello").dropFirst())
        #expect(publisher("PUBLISH nobody hello") == Wire.int(0))
    }

    private func subscribed(_ channel: String, _ count: Int) -> String {
        Wire.array(Wire.bulk("subscribe"), Wire.bulk(channel), Wire.int(count))
    }

    /// While a RESP2 connection has subscriptions, it accepts only a few commands, so all fast paths are disabled.
    /// Afterwards, they are enabled again.
    @Test func noFastPathBypassesSubscriberMode() throws {
        let server = try SocketlessServer()
        let client = server.connect()
        #expect(client("SET k v") == Wire.ok)
        _ = client("SUBSCRIBE a")
        for line in ["GET k", "SET k w", "MGET k", "EXISTS k"] {
            #expect(client(line).hasPrefix("-ERR Can't execute '\(line.split(separator: " ")[0].lowercased())': only"))
        }
        client.feed(Array(repeating: encodeRequest("GET k"), count: 5).flatMap { $0 })
        #expect(client.takeSendable().split(separator: "\r\n").allSatisfy { $0.hasPrefix("-ERR Can't execute 'get'") })
        #expect(client("PING") == Wire.bulks("pong", ""))
        _ = client("UNSUBSCRIBE")
        #expect(client("GET k") == Wire.bulk("v"))
        #expect(client("PING") == "+PONG\r\n")
        #expect(client.session.prechecks.allowsAll)
    }

    @Test func disconnectedSubscribersAreRemoved() throws {
        let server = try SocketlessServer()
        let publisher = server.connect()
        var client = Optional(server.connect())
        _ = client?("SUBSCRIBE a")
        _ = client?("PSUBSCRIBE a*")
        _ = client?("SSUBSCRIBE a")
        #expect(publisher("PUBLISH a x") == Wire.int(2))
        client?.session.end()
        #expect(publisher("PUBLISH a x") == Wire.int(0))
        #expect(publisher("SPUBLISH a x") == Wire.int(0))
        #expect(publisher("PUBSUB NUMPAT") == Wire.int(0))

        // If the connection closes while another thread has the session, the session is released without `end`.
        client = server.connect()
        _ = client?("SUBSCRIBE a")
        if let client { server.forget(client) }
        client = nil
        #expect(publisher("PUBSUB NUMSUB a") == Wire.array(Wire.bulk("a"), Wire.int(0)))
    }

    /// Regression test: each SUBSCRIBE and UNSUBSCRIBE copied all names of the connection. This took minutes, and
    /// blocked the loop.
    @Test(
        .timeLimit(.minutes(10)),
        arguments: [("SUBSCRIBE", "UNSUBSCRIBE"), ("PSUBSCRIBE", "PUNSUBSCRIBE"), ("SSUBSCRIBE", "SUNSUBSCRIBE")])
    func subscribingToManyNamesIsNotQuadratic(_ begin: String, _ end: String) throws {
        var limits = Limits()
        limits.subscriptionBytesMax = 1 << 30
        let server = try SocketlessServer(limits: limits)
        let client = server.connect()
        let names = (0..<40_000).map { "name-\($0)" }
        for start in stride(from: 0, to: names.count, by: 1000) {
            client.feed(encodeRequest([begin] + names[start..<start + 1000]))
            _ = client.takeSendable()
        }
        #expect(client.session.subscriptions.byteCount > 40_000 * 100)
        client.feed(encodeRequest([end]))
        #expect(client.takeSendable().hasSuffix(Wire.int(0)))
        #expect(client.session.subscriptions.isEmpty)
        #expect(server.connect()("PUBSUB NUMPAT") == Wire.int(0))
        #expect(server.connect()("PUBSUB CHANNELS") == "*0\r\n")
    }

    /// Messages for patterns come in the order of subscription, however the patterns are stored.
    @Test func patternsReceiveMessagesInSubscriptionOrder() throws {
        let server = try SocketlessServer()
        let (client, publisher) = (server.connect(), server.connect())
        let patterns = (1...20).map { "a" + String(repeating: "*", count: $0) }
        _ = client((["PSUBSCRIBE"] + patterns).joined(separator: " "))
        #expect(publisher("PUBLISH abc x") == Wire.int(20))
        let notified = client.takeSendable().split(separator: "\r\n").filter { $0.hasPrefix("a*") }
        #expect(notified.map(String.init) == patterns)
    }

    /// Messages that are published before an UNSUBSCRIBE arrive before its reply. No message arrives after that reply.
    @Test func pendingMessagesArriveBeforeTheUnsubscribeReply() throws {
        let server = try SocketlessServer()
        let (client, publisher) = (server.connect(), server.connect())
        _ = client("SUBSCRIBE a")
        publisher.feed(encodeRequest("PUBLISH a 1"))
        #expect(!server.pushes.isEmpty)
        client.feed(encodeRequest("UNSUBSCRIBE a"))
        #expect(
            client.takeSendable() == message("a", "1")
                + Wire.array(Wire.bulk("unsubscribe"), Wire.bulk("a"), Wire.int(0)))
    }

    /// In RESP2, where messages look like replies, no message arrives outside of subscriber mode.
    @Test("in RESP2, no message arrives outside of subscriber mode")
    func noMessageArrivesOutsideOfSubscriberMode() throws {
        let server = try SocketlessServer()
        let client = server.connect()
        let late = PushMessage.message("message", channel: [], [])
        client.session.push(late)
        #expect(client.takeSendable().isEmpty)
        _ = client("HELLO 3")
        client.session.push(late)
        #expect(client.takeSendable() == ">3\r\n$7\r\nmessage\r\n$0\r\n\r\n$0\r\n\r\n")
    }

    /// A reply that waits for its commit also delays the messages after it.
    @Test("pub/sub messages wait for earlier replies whose commit is pending")
    func messagesWaitForEarlierRepliesToBeCommitted() throws {
        let server = try SocketlessServer()
        let (client, publisher) = (server.connect(), server.connect())
        _ = client("HELLO 3")
        _ = client("SUBSCRIBE a")
        client.feed(encodeRequest("SET k v"))
        publisher.feed(encodeRequest("PUBLISH a 1"))
        server.deliver()
        #expect(client.takeSendable().isEmpty)
        server.commit()
        #expect(client.takeSendable() == Wire.ok + ">" + message("a", "1").dropFirst())
    }

    /// If the commands of a transaction have to run a second time, their message is still sent only once, after the
    /// reply.
    @Test func aTransactionPublishesOnce() throws {
        let server = try SocketlessServer()
        let (client, publisher) = (server.connect(), server.connect())
        _ = publisher("HELLO 3")
        _ = client("SUBSCRIBE a")
        _ = publisher("SUBSCRIBE a")
        for line in ["MULTI", "PUBLISH a x", "SET k v", "GET k", "EXEC"] { publisher.feed(encodeRequest(line)) }
        server.commit()
        #expect(client.takeSendable() == message("a", "x"))
        #expect(
            publisher.takeSendable().hasSuffix(
                Wire.array(Wire.int(2), Wire.ok, Wire.bulk("v")) + ">" + message("a", "x").dropFirst()))
    }

    @Test func publishersWaitForSlowEventLoops() throws {
        var limits = Limits()
        limits.undeliveredBytesMax = 1000
        let server = try SocketlessServer(limits: limits)
        let (client, publisher) = (server.connect(), server.connect())
        _ = client("SUBSCRIBE a")
        let payload = String(repeating: "x", count: 600)
        publisher.feed((0..<5).flatMap { _ in encodeRequest(["PUBLISH", "a", payload]) })
        #expect(publisher.pauses == ["congested", "congested"])
        #expect(publisher.takeSendable() == String(repeating: Wire.int(1), count: 5))
        server.deliver()
        #expect(client.takeSendable() == String(repeating: message("a", payload), count: 5))
        #expect(server.state.pubsub.pending.bytes.read() == 0)
    }

    // MARK: The queue

    @Test func manyMessagesWakeAnEventLoopOnlyOnce() {
        let queue = PushQueue(PendingBytes())
        let woken = Guarded(0)
        let delivered = Recorder<Int64>()
        queue.onAdded { woken.with { $0 += 1 } }
        queue.deliver = { for id in $0.connections { delivered.add(id) } }
        func add(_ id: Int64, from: PushQueue? = nil) {
            queue.add(PushQueue.Delivery(message: .message("message", channel: [], []), connections: [id]), from: from)
        }
        for id in 0..<10 { add(Int64(id)) }
        #expect(woken.value == 1)
        queue.deliverAll()
        #expect(delivered.all == Array(0..<10))
        // The loop need not be woken for messages that it adds itself.
        add(10, from: queue)
        #expect(woken.value == 1)
        queue.deliverAll()
        add(11)
        #expect(woken.value == 2)
    }

    @Test func messagesOfLiveQueriesAreDeliveredInParts() {
        let pending = PendingBytes()
        let queue = PushQueue(pending)
        let woken = Guarded(0)
        let delivered = Recorder<Int64>()
        queue.onAdded { woken.with { $0 += 1 } }
        queue.deliver = { for id in $0.connections { delivered.add(id) } }
        let message = PushMessage.live(1, .reset([]), positions: false)
        for id in 0..<5 { queue.add(PushQueue.Delivery(message: message, connections: [Int64(id)])) }
        queue.add(PushQueue.Delivery(message: .message("message", channel: [], []), connections: [9]))
        #expect(woken.value == 1)
        queue.deliverAll()
        #expect(delivered.all == [9])
        #expect(queue.deliverLive(upTo: 2 * message.byteCount))
        #expect(delivered.all == [9, 0, 1] && pending.bytes.read() == 3 * message.byteCount)
        #expect(!queue.deliverLive(upTo: .max))
        #expect(delivered.all == [9, 0, 1, 2, 3, 4] && pending.bytes.read() == 0)
        queue.add(PushQueue.Delivery(message: message, connections: [5]))
        #expect(woken.value == 2)
    }

    /// The number of subscriptions of one connection is limited. Unsubscribing makes space for others.
    @Test func subscriptionsOfAConnectionAreLimited() throws {
        var limits = Limits()
        limits.subscriptionBytesMax = 3 * Subscriptions.byteCount(2)
        let server = try SocketlessServer(limits: limits)
        let client = server.connect()
        _ = client("HELLO 3")
        _ = client("SUBSCRIBE aa bb")
        let refused = client("PSUBSCRIBE cc dd")
        #expect(refused.hasPrefix("-ERR subscriptions of one connection exceed"))
        #expect(refused.contains("--max-subscriptions"))
        #expect(client("PUBSUB NUMPAT") == Wire.int(0), "none of them")
        #expect(client("SSUBSCRIBE cc").hasPrefix(">3"))
        #expect(client("SUBSCRIBE dd").hasPrefix("-ERR"))
        _ = client("UNSUBSCRIBE aa")
        #expect(client("SUBSCRIBE dd").hasPrefix(">3"))
        #expect(server.connect()("PUBSUB NUMSUB dd") == "*2\r\n" + Wire.bulk("dd") + ":1\r\n")
    }
}
