import LarderPlatform
import LarderServer
import LarderTestSupport
import Testing

/// Tests of requests that are slow, incomplete, or as large as allowed. While they are handled, other clients are
/// served, and the daemon's memory stays within the limits of docs/Protocol.md.
@Suite(.serialized) struct HostileRequestTests {
    private static let loops = [1, 2]

    /// Many clients send a few bytes at a time, each with different interruptions.
    @Test("requests that arrive slowly are served", arguments: loops) func slowSenders(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let probe = try ProbeClient(daemon)
        let clients = try (0..<64).map { _ in try daemon.connect() }
        let requests = clients.indices.map { encodeRequest(["SET", "slow \($0)", "\($0)"]) + encodeRequest("PING") }
        let longest = requests.map(\.count).max() ?? 0
        for index in 0..<longest {
            for (client, request) in zip(clients, requests) where index < request.count {
                try client.send([request[index]])
            }
            try probe.waitForRounds(1)
        }
        for client in clients { #expect(try client.receive(2) == [Array("+OK\r\n".utf8), Array("+PONG\r\n".utf8)]) }
        #expect(try clients[0].call(["GET", "slow 63"]) == Array("$2\r\n63\r\n".utf8))
        try probe.stop("slow senders, \(threads) loops")
    }

    /// Incomplete requests use only as much memory as was sent, regardless of the length that they announce.
    @Test("incomplete requests use only the memory that was sent", arguments: loops)
    func halfRequests(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let probe = try ProbeClient(daemon)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let starts = [
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n", "*1048576\r\n$4\r\nMSET\r\n", "*1\r\n$", "*", "GET half",
            "*2\r\n$3\r\nGET\r\n$65536\r\nabc", "SET k \"open",
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nsome bytes",
        ]
        var clients: [SocketClient] = []
        for start in starts {
            for _ in 0..<50 {
                let client = try daemon.connect()
                try client.send(Array(start.utf8))
                clients.append(client)
            }
        }
        try probe.waitForRounds(500)
        Hostility.expectPeak(of: daemon, atMost: before + (64 << 20), "\(clients.count) half requests")
        #expect(try anotherClientSees(daemon, "EXISTS k") == ":0\r\n")
        // The clients disconnect one after the other, each in the middle of a request.
        clients = []
        try probe.waitForRounds(500)
        while try connected(daemon) > 2 { nap() }
        try probe.stop("half requests, \(threads) loops")
    }

    /// Invalid requests are refused at once, and the connection is closed.
    @Test(
        "invalid requests are refused at once",
        arguments: [
            ("*1048577\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
            ("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870913\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
            ("*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
            ("*1\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
            (String(repeating: "x", count: 70_000), "-ERR Protocol error: too big inline request\r\n"),
        ]) func refusedRequests(_ request: String, _ reply: String) throws
    {
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        try client.send(Array(request.utf8))
        #expect(String(decoding: try client.receiveToEnd(), as: UTF8.self) == reply)
        #expect(try anotherClientSees(daemon, "PING") == "+PONG\r\n")
    }

    /// A value of the maximum length is stored and returned completely, and its memory is released.
    @Test("a value of the maximum length is stored and returned", arguments: loops)
    func aHugeValue(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--durability", "os"])
        let probe = try ProbeClient(daemon)
        try probe.waitForRounds(100)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let value = PatternedValue(count: Hostility.valueBytes, seed: 7)
        let client = try daemon.connect()
        try client.send(Array("*3\r\n$3\r\nSET\r\n$4\r\nhuge\r\n".utf8))
        try value.send(to: client) { try probe.waitForRounds(10) }
        #expect(try client.receive() == Array("+OK\r\n".utf8))
        try probe.waitForRounds(10)
        // At first, the request and the entry are in memory. Later, memory has the entry, and a checkpoint's batch and
        // table with the entry. So docs/Protocol.md allows three times the length.
        Hostility.expectPeak(of: daemon, atMost: before + 7 * value.count / 2 + (64 << 20), "SET of a huge value")
        daemon.forgetPeak()
        #expect(value.isReply(try client.call(["GET", "huge"])))
        try probe.waitForRounds(10)
        // While that checkpoint is still running, GET needs additional memory: for the data that it reads, and for its
        // reply.
        Hostility.expectPeak(of: daemon, atMost: before + 5 * value.count + (64 << 20), "GET of a huge value")
        #expect(try client.call("STRLEN huge") == ":\(value.count)\r\n")
        #expect(try client.call("DEL huge") == ":1\r\n")
        try probe.stop("a huge value, \(threads) loops")
        let (end, log) = (try daemon.stop(), daemon.process.errors)
        #expect(end == .exited(0) && !log.contains(" error "), "\(log)")
    }

    /// Each of four clients sends a few bytes that request the longest value. The memory for building values is limited
    /// to one such value.
    @Test("short requests that build huge values use bounded memory") func hugeValuesFromTinyRequests() throws {
        let daemon = try DaemonProcess(["--durability", "os", "--memory", "64M"])
        let probe = try ProbeClient(daemon)
        try probe.waitForRounds(100)
        let before = daemon.residentBytes ?? 0
        let length = Hostility.valueBytes
        let clients = try (0..<4).map { _ in try daemon.connect() }
        for letter in ["x", "y"] {
            daemon.forgetPeak()
            for (index, client) in clients.enumerated() {
                try client.send(["SETRANGE", "huge \(index)", "\(length - 1)", letter])
            }
            for client in clients { #expect(try client.receive() == Array(":\(length)\r\n".utf8)) }
            Hostility.expectPeak(
                of: daemon, atMost: before + Hostility.builtValues(length), "SETRANGE of four huge values, \(letter)")
        }
        // The reads also fill LevelDB's cache, which this test does not measure.
        for (index, client) in clients.enumerated() {
            #expect(try client.call(["GETRANGE", "huge \(index)", "-1", "-1"]) == Array("$1\r\ny\r\n".utf8))
        }
        try probe.stop("huge values from tiny requests")
    }

    /// Tests commands with the maximum number of words.
    @Test("commands with a million arguments use bounded memory", arguments: loops)
    func aMillionArguments(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--durability", "os"])
        let probe = try ProbeClient(daemon)
        try probe.waitForRounds(100)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let count = Hostility.arguments
        let keys = (0..<count / 2).map { "key:\($0)" }
        let client = try daemon.connect()
        try sendWords(client, ["MSET"], keys) { [$0, $0] }
        #expect(try client.receive() == Array("+OK\r\n".utf8))
        #expect(try client.call("DBSIZE") == ":\(keys.count + 1)\r\n")
        let reader = try daemon.connect()
        try sendWords(reader, ["MGET"], keys) { [$0, "nothing"] }
        reader.endSending()
        #expect(try reader.receiveToEnd() == mgetReply(keys))
        try sendWords(client, ["EXISTS"], keys) { [$0, $0] }
        #expect(try client.receive() == Array(":\(2 * keys.count)\r\n".utf8))
        try sendWords(client, ["DEL"], keys) { [$0, "nothing"] }
        #expect(try client.receive() == Array(":\(keys.count)\r\n".utf8))
        #expect(try client.call("DBSIZE") == ":1\r\n")
        try probe.waitForRounds(10)
        // For each word: about 30 bytes of the request, and several hundred bytes for its result.
        Hostility.expectPeak(of: daemon, atMost: before + 600 * count + (160 << 20), "a command of \(count) words")
        try probe.stop("\(count) words, \(threads) loops")
    }

    /// The whole pipeline is sent before the first reply is read.
    @Test("a pipeline of a million requests uses bounded memory", arguments: loops)
    func aPipelineOfAMillion(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--durability", "os"])
        let probe = try ProbeClient(daemon)
        try probe.waitForRounds(100)
        let before = daemon.residentBytes ?? 0
        daemon.forgetPeak()
        let client = try daemon.connect()
        let value = String(repeating: "v", count: 100)
        #expect(try client.call("SET k \(value)") == "+OK\r\n")
        let chunk = 1000
        let requests = Array((0..<chunk).map { _ in encodeRequest("GET k") + encodeRequest("INCR n") }.joined())
        let servedBefore = probe.served
        for _ in 0..<(Hostility.pipelined / (2 * chunk)) { try client.send(requests) }
        client.endSending()
        // Other clients are served while these replies wait to be read.
        try probe.waitForRounds(100)
        let get = Array("$100\r\n\(value)\r\n".utf8)
        for number in 1...(Hostility.pipelined / 2) {
            let replies = try client.receive(2)
            guard replies == [get, Array(":\(number)\r\n".utf8)] else {
                Issue.record("reply \(number) is \(String(decoding: replies.joined(), as: UTF8.self))")
                break
            }
        }
        #expect(try client.receiveToEnd() == [])
        #expect(probe.served > servedBefore + 100)
        // 64 MiB of requests, whose buffer may be copied once to grow, and 8 MiB of replies.
        Hostility.expectPeak(of: daemon, atMost: before + (192 << 20), "a pipeline of \(Hostility.pipelined)")
        try probe.stop("a pipeline of \(Hostility.pipelined), \(threads) loops")
    }

    // MARK: Helpers

    /// Sends a command with many words, without building the whole command in memory first.
    private func sendWords(
        _ client: SocketClient, _ first: [String], _ keys: [String], _ words: (String) -> [String]
    ) throws {
        let each = words("").count
        var bytes = Array("*\(first.count + keys.count * each)\r\n".utf8)
        func add(_ word: String) { bytes.append(contentsOf: "$\(word.utf8.count)\r\n\(word)\r\n".utf8) }
        for word in first { add(word) }
        for key in keys {
            for word in words(key) { add(word) }
            if bytes.count > 1 << 20 {
                try client.send(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
        }
        try client.send(bytes)
    }

    private func mgetReply(_ keys: [String]) -> [UInt8] {
        var bytes = Array("*\(2 * keys.count)\r\n".utf8)
        for key in keys { bytes.append(contentsOf: "$\(key.utf8.count)\r\n\(key)\r\n$-1\r\n".utf8) }
        return bytes
    }

    private func anotherClientSees(_ daemon: DaemonProcess, _ command: String) throws -> String {
        try daemon.connect().call(command)
    }

    /// Returns the number of the daemon's connections, including the connection of this request.
    private func connected(_ daemon: DaemonProcess) throws -> Int { try HostileQuestions.connected(daemon) }
}

/// Queries of a daemon about its clients.
enum HostileQuestions {
    /// Returns the number of connections, including the connection of this request.
    static func connected(_ daemon: DaemonProcess) throws -> Int {
        let info = try daemon.connect().call("INFO clients")
        let line = info.split(separator: "\r\n").first { $0.hasPrefix("connected_clients:") }
        return try #require(line.flatMap { Int($0.dropFirst("connected_clients:".count)) })
    }
}
