import LarderPlatform
import LarderServer
import LarderTestSupport
import Testing

/// Tests of clients that do not read, that are too many, or that disconnect at any moment.
@Suite(.serialized) struct HostileConnectionTests {
    private static let loops = [1, 2]

    /// If clients only send, the daemon stops reading from them, then disconnects them, and logs that.
    @Test("clients that never read are disconnected", arguments: loops)
    func clientsThatNeverRead(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--reply-timeout", "1"])
        let probe = try ProbeClient(daemon)
        let value = String(repeating: "v", count: 100_000)
        let client = try daemon.connect()
        #expect(try client.call("SET large \(value)") == "+OK\r\n")
        try probe.waitForRounds(100)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let count = 8
        let requests = Array((0..<1000).map { _ in encodeRequest("GET large") }.joined())
        let hostile = try (0..<count).map { _ in
            let client = try daemon.connect()
            // These requests cause a thousand replies of 100 kB.
            try client.send(requests)
            return client
        }
        for _ in 0..<count {
            let line = try daemon.process.waitForErrorLine(containing: "bytes of replies were unread")
            #expect(line.contains(" info client ") && line.contains("(--reply-timeout)"), "\(line)")
        }
        try probe.waitForRounds(100)
        // For each client: 8 MiB of replies, one more reply, and the requests that it sent.
        Hostility.expectPeak(of: daemon, atMost: before + count * (24 << 20), "\(count) clients that never read")
        for client in hostile {
            // Replies that were already sent arrive. Then the server closes the connection.
            let bytes = try client.receiveToEnd()
            #expect(bytes.count < 100_000_000)
        }
        #expect(try client.call("STRLEN large") == ":100000\r\n", "other clients stay connected")
        try probe.stop("clients that never read, \(threads) loops")
    }

    /// Opens the maximum number of connections. Each is served, and uses little memory while it is idle.
    @Test("the maximum number of connections is served", arguments: loops) func manyConnections(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--durability", "os"])
        let probe = try ProbeClient(daemon)
        try probe.waitForRounds(100)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let count = Hostility.connections
        var clients: [SocketClient] = []
        for index in 0..<count {
            let client = try daemon.connect()
            try client.send(["SET", "of \(index)", "\(index)"])
            clients.append(client)
        }
        for client in clients { #expect(try client.receive() == Array("+OK\r\n".utf8)) }
        try probe.waitForRounds(100)
        for client in clients { try client.send(["INCR", "all"]) }
        var sum = 0
        for client in clients {
            let reply = String(decoding: try client.receive().dropFirst().dropLast(2), as: UTF8.self)
            sum += Int(reply) ?? 0
        }
        #expect(sum == count * (count + 1) / 2)
        #expect(try clients[0].call("GET all") == "$\("\(count)".utf8.count)\r\n\(count)\r\n")
        if let peak = daemon.peakResidentBytes {
            print("hostile clients, \(count) connections: \((peak - before) / count) bytes of memory for each")
        }
        Hostility.expectPeak(of: daemon, atMost: before + count * 16_384 + (32 << 20), "\(count) connections")
        // All clients disconnect at once.
        clients = []
        try probe.waitForRounds(100)
        while try HostileQuestions.connected(daemon) > 2 { nap() }
        try probe.stop("\(count) connections, \(threads) loops")
    }

    /// A connection above the limit gets an error, which is logged. After others have closed, a new connection is
    /// served.
    @Test("connections above the limit get an error", arguments: loops) func tooManyConnections(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--max-clients", "20"])
        let clients = try (0..<20).map { _ in
            let client = try daemon.connect()
            #expect(try client.call("PING") == "+PONG\r\n")
            return client
        }
        for _ in 0..<100 {
            let refused = try daemon.connect()
            #expect(
                String(decoding: try refused.receiveToEnd(), as: UTF8.self) == "-ERR max number of clients reached\r\n")
        }
        let line = try daemon.process.waitForErrorLine(containing: "refused a connection")
        #expect(line.contains("--max-clients"))
        #expect(try clients[0].call("PING") == "+PONG\r\n")
        clients[1].close()
        while true {
            let client = try daemon.connect()
            try? client.send(["PING"])
            if (try? client.receive()) == Array("+PONG\r\n".utf8) { break }
        }
    }

    /// The lines of MONITOR are stored once for all monitors, and none is lost if the monitors read late. Regression
    /// test: each monitor had its own copy.
    @Test(arguments: loops) func monitorsThatDoNotReadShareTheirLines(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let probe = try ProbeClient(daemon)
        let writer = try daemon.connect()
        let value = String(repeating: "v", count: 10_000)
        #expect(try writer.call("SET k \(value)") == "+OK\r\n")
        try probe.waitForRounds(100)
        try probe.stop("before the monitors, \(threads) loops")
        let (monitors, lines) = (30, 600)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let clients = try (0..<monitors).map { _ in
            let client = try daemon.connect()
            #expect(try client.call("MONITOR") == "+OK\r\n")
            return client
        }
        for index in 0..<lines { #expect(try writer.call("SET k:\(index) \(value)") == "+OK\r\n") }
        // For each loop, 6 MB of lines; the stored values; and for each monitor, data that is being sent. Copies for
        // each monitor would take 180 MB.
        Hostility.expectPeak(
            of: daemon, atMost: before + (1 + threads) * (20 << 20) + monitors * (1 << 20), "\(monitors) monitors")
        for client in clients {
            // The reply to a monitor's own command follows the lines that were produced before it.
            try client.send(["PING"])
            for index in 0..<lines {
                let line = String(decoding: try client.receive(), as: UTF8.self)
                #expect(line.hasPrefix("+") && line.contains("] \"SET\" \"k:\(index)\" \"vvv"), "\(line.prefix(100))")
            }
            var reply = try client.receive()
            while reply.count > 7 { reply = try client.receive() }
            #expect(reply == Array("+PONG\r\n".utf8))
        }
    }

    /// A monitor that reads gets every line, even if other monitors are disconnected.
    @Test(arguments: loops) func monitorsBeyondTheLimitAreDisconnected(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--max-subscriber-output", "1m"])
        let (writer, reader) = (try daemon.connect(), try daemon.connect())
        let clients = try (0..<10).map { _ in
            let client = try daemon.connect()
            #expect(try client.call("MONITOR") == "+OK\r\n")
            return client
        }
        #expect(try reader.call("MONITOR") == "+OK\r\n")
        let value = String(repeating: "v", count: 50_000)
        for index in 0..<100 {
            #expect(try writer.call("SET k:\(index) \(value)") == "+OK\r\n")
            let line = String(decoding: try reader.receive(), as: UTF8.self)
            #expect(line.contains("] \"SET\" \"k:\(index)\""), "\(line.prefix(100))")
        }
        for _ in clients { _ = try daemon.process.waitForErrorLine(containing: "bytes of messages were unread") }
        #expect(try writer.call("PING") == "+PONG\r\n")
    }

    /// The limit for unread messages does not count the client's own replies.
    @Test(arguments: loops) func aLongReplyDoesNotDisconnectAClientThatTracksKeys(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--max-subscriber-output", "1m"])
        let (client, writer) = (try daemon.connect(), try daemon.connect())
        let value = String(repeating: "v", count: 8 << 20)
        #expect(try writer.call("SET long \(value)") == "+OK\r\n")
        #expect(try client.call("HELLO 3").hasPrefix("%"))
        #expect(try client.call("CLIENT TRACKING ON") == "+OK\r\n")
        #expect(try client.call("GET other") == "_\r\n")
        try client.send(["GET", "long"])
        while try writer.call("CLIENT LIST").firstMatch(of: #/omem=\d{7}/#) == nil { nap() }
        #expect(try writer.call("SET other 1") == "+OK\r\n")
        #expect(try client.receive().count > 8 << 20)
        #expect(try client.receive().starts(with: Array(">2\r\n$10\r\ninvalidate".utf8)))
        #expect(try client.call("PING") == "+PONG\r\n")
    }

    @Test(arguments: loops) func theListShowsAnUnfinishedRequest(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let (client, other) = (try daemon.connect(), try daemon.connect())
        let request = encodeRequest(["SET", "k", String(repeating: "v", count: 3 << 20)])
        try client.send(Array(request.dropLast(1 << 20)))
        while try other.call("CLIENT LIST").firstMatch(of: #/qbuf=2\d{6} /#) == nil { nap() }
        try client.send(Array(request.suffix(1 << 20)))
        #expect(try client.receive() == Array("+OK\r\n".utf8))
        while try other.call("CLIENT LIST").contains(#/qbuf=\d{2}/#) { nap() }
    }

    /// Subscribers that disappear leave no resources in use, and publishers are not delayed.
    @Test(arguments: loops)
    func subscribersThatDisconnectAreCleanedUp(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let probe = try ProbeClient(daemon)
        let listener = try daemon.connect()
        #expect(try listener.call("SUBSCRIBE news") == "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
        let publisher = try daemon.connect()
        let payload = String(repeating: "m", count: 1000)
        try probe.waitForRounds(100)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        var heard = 0
        for round in 0..<5 {
            var subscribers = try (0..<Hostility.subscribers).map { index in
                let client = try daemon.connect()
                try client.send(["SUBSCRIBE", "news", "of \(index)"])
                try client.send(["PSUBSCRIBE", "n*", "\(index)?"])
                if index % 2 == 0 { _ = try client.receive(4) }
                return client
            }
            // The subscribers disconnect while messages are being sent to them.
            for _ in 0..<20 { try publisher.send(["PUBLISH", "news", payload]) }
            subscribers.removeAll()
            for _ in 0..<20 { #expect(try publisher.receive().first == UInt8(ascii: ":"), "round \(round)") }
            heard += 20
            try probe.waitForRounds(10)
        }
        while try publisher.call("PUBSUB NUMSUB news") != "*2\r\n$4\r\nnews\r\n:1\r\n" { nap() }
        while try publisher.call("PUBSUB NUMPAT") != ":0\r\n" { nap() }
        #expect(try publisher.call("PUBSUB CHANNELS") == "*1\r\n$4\r\nnews\r\n")
        let message = Array("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1000\r\n\(payload)\r\n".utf8)
        for _ in 0..<heard { #expect(try listener.receive() == message) }
        Hostility.expectPeak(
            of: daemon, atMost: before + Hostility.subscribers * 65_536 + (64 << 20), "subscribers that vanish")
        try probe.stop("subscribers that vanish, \(threads) loops")
    }

    /// A subscriber that does not read is disconnected, with the reason in the log. The others get all messages.
    @Test("a subscriber that never reads is disconnected", arguments: loops)
    func subscribersThatNeverRead(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--max-subscriber-output", "1M"])
        let probe = try ProbeClient(daemon)
        let listener = try daemon.connect()
        let deaf = try (0..<4).map { _ in try daemon.connect() }
        for client in [listener] + deaf { _ = try client.call("SUBSCRIBE news") }
        try probe.waitForRounds(100)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let publisher = try daemon.connect()
        let payload = String(repeating: "m", count: 10_000)
        let message = Array("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$10000\r\n\(payload)\r\n".utf8)
        for _ in 0..<1000 {
            #expect(try publisher.call("PUBLISH news \(payload)").hasPrefix(":"))
            #expect(try listener.receive() == message)
        }
        for _ in deaf {
            let line = try daemon.process.waitForErrorLine(containing: "bytes of messages were unread")
            #expect(line.contains("--max-subscriber-output"), "\(line)")
        }
        while try publisher.call("PUBSUB NUMSUB news") != "*2\r\n$4\r\nnews\r\n:1\r\n" { nap() }
        Hostility.expectPeak(of: daemon, atMost: before + (48 << 20), "subscribers that never read")
        try probe.stop("subscribers that never read, \(threads) loops")
    }

    /// The output of all clients together is limited, although none has reached its own limit. Those with the most
    /// unread output are disconnected, and others get all messages.
    @Test("many subscribers that never read use limited memory", arguments: loops)
    func manySubscribersThatNeverRead(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--max-output", "48M"])
        let (listener, kept, publisher) = (try daemon.connect(), try daemon.connect(), try daemon.connect())
        #expect(try kept.call("CLIENT NO-EVICT ON") == "+OK\r\n")
        let deaf = try (0..<40).map { _ in try daemon.connect() }
        for client in [listener, kept] + deaf { _ = try client.call("SUBSCRIBE news") }
        func subscribers() throws -> Int {
            try #require(publisher.call("PUBSUB NUMSUB news").firstMatch(of: #/:(\d+)/#).flatMap { Int($0.1) })
        }
        // A client with less unread output than the subscribers.
        let value = String(repeating: "v", count: 1 << 20)
        let patient = try daemon.connect()
        #expect(try patient.call("SET k \(value)") == "+OK\r\n")
        try patient.send(["GET", "k"])
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let payload = String(repeating: "m", count: 100_000)
        let message = Array("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$100000\r\n\(payload)\r\n".utf8)
        for count in 1...120 {
            #expect(try publisher.call("PUBLISH news \(payload)").hasPrefix(":"))
            #expect(try listener.receive() == message)
            // Wait until so many are disconnected that the others' unread output is within the limit, apart from what
            // their sockets hold.
            var naps = 0
            while naps < 10_000, (try subscribers() - 2) * count * message.count > (48 + 12) << 20 {
                nap()
                naps += 1
            }
        }
        let line = try daemon.process.waitForErrorLine(containing: "bytes of output were unread")
        #expect(line.contains("the limit is 50331648 (--max-output)"), "\(line)")
        let info = try publisher.call("INFO stats")
        let evicted = try #require(info.firstMatch(of: #/evicted_clients:(\d+)/#).flatMap { Int($0.1) })
        #expect((30...40).contains(evicted), "\(evicted)")
        // 40 times 12 MB were published, and buffers with unread output double when they grow.
        Hostility.expectPeak(of: daemon, atMost: before + (240 << 20), "many subscribers that never read")
        for _ in 0..<120 { #expect(try kept.receive() == message) }
        #expect(try patient.receive().count > 1 << 20)
    }

    /// Commands that a client queued before it disconnected or was killed are not executed, and the keys that it
    /// watched are released.
    @Test("commands queued by a killed client are not executed", arguments: loops)
    func killedDuringMULTI(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let probe = try ProbeClient(daemon)
        let killer = try daemon.connect()
        for round in 0..<50 {
            let victim = try daemon.connect()
            let id = String(try victim.call("CLIENT ID").dropFirst().dropLast())
            #expect(try victim.call("WATCH watched") == "+OK\r\n")
            #expect(try victim.call("MULTI") == "+OK\r\n")
            #expect(try victim.call("SET queued \(round)") == "+QUEUED\r\n")
            #expect(try victim.call("INCR counted") == "+QUEUED\r\n")
            switch round % 3 {
            case 0: victim.close()
            case 1:
                #expect(try killer.call("CLIENT KILL ID \(id)") == ":1\r\n")
                #expect(try victim.receiveToEnd() == [])
            default:
                // Disconnect in the middle of sending EXEC.
                try victim.send(Array("*1\r\n$4\r\nEX".utf8))
                victim.close()
            }
            #expect(try killer.call("SET watched \(round)") == "+OK\r\n")
        }
        try probe.waitForRounds(10)
        #expect(try killer.call("EXISTS queued counted") == ":0\r\n")
        while try HostileQuestions.connected(daemon) > 3 { nap() }
        // Kill the process of a client, which closes its connection without notice too.
        let child = try ChildProcess(
            "redis-cli", ["-s", daemon.socketPath], input: Array("MULTI\nSET queued 1\nDEBUG SLEEP 0\n".utf8))
        while try HostileQuestions.connected(daemon) < 4, child.output.isEmpty { nap() }
        child.killNow()
        while try HostileQuestions.connected(daemon) > 3 { nap() }
        #expect(try killer.call("EXISTS queued") == ":0\r\n")
        try probe.stop("killed during MULTI, \(threads) loops")
        // Kill the daemon itself: none of the queued commands has an effect.
        let victim = try daemon.connect()
        #expect(try victim.call("MULTI") == "+OK\r\n")
        #expect(try victim.call("SET queued 1") == "+QUEUED\r\n")
        let end = try daemon.stop()
        #expect(end == .exited(0))
    }
}
