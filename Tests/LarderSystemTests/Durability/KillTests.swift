import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of SIGKILL under load, repeated on the same larder: acknowledged writes are stored, and no batch is stored in
/// part.
@Suite struct KillTests {
    /// The value of `LARDER_KILL_ROUNDS`, or 20 if it is not set.
    private static var rounds: Int { TestSetting.killRounds.number() ?? 20 }

    @Test(arguments: [
        [], ["--threads", "2"], ["--durability", "always"], ["--threads", "2", "--durability", "always"],
        // These options cause checkpoints all the time.
        ["--checkpoint", "16K"], ["--threads", "2", "--checkpoint", "2K", "--memory", "0"],
    ])
    func acknowledgedWritesSurviveKills(_ options: [String]) throws {
        var generator = SeededGenerator(seed: testSeed("kill \(options)"))
        // Use the disk, not memory, so that fsync takes time.
        let place = try TemporaryDirectory()
        let load = Load(clients: 4)
        // Run all rounds with the default options, and half as many with each of the others.
        let rounds = options.isEmpty ? Self.rounds : (Self.rounds + 1) / 2
        for round in 0..<rounds {
            let daemon = try DaemonProcess(options, in: place)
            try load.verify(try daemon.connect(), "round \(round)")
            let window = Int.random(in: 1...64, using: &generator)
            let enough = load.acknowledged + Int.random(in: 1...1500, using: &generator)
            let threads = try load.start(daemon, window: window)
            load.waitUntil(acknowledged: enough)
            daemon.kill()
            for thread in threads { thread.join() }
        }
        let daemon = try DaemonProcess(options, in: place)
        try load.verify(try daemon.connect(), "the end")
        print("kill \(options): \(rounds) rounds, \(load.acknowledged) acknowledged commands")
        #expect(try daemon.stop() == .exited(0))
    }
}

/// Clients that write numbers, each to its own keys, and record which writes were acknowledged.
///
/// - Writer c sets `c<c>:<n % keys>` to n, in pipelines.
/// - The batch writer sets `b0` … `b9` to n with one MSET, and every third time removes them with one DEL.
/// - The transaction writer sets `x0` … `x9` of database 0 and `x0` of `other` to n with one EXEC.
/// - The script writer sets `s0` … `s5` to n with one script: with declared keys, with undeclared keys, or slowly.
/// - The reader reads the first writer's keys: the values that it read must still be stored after the kill.
///
/// Thread-safe. `@unchecked Sendable`: all state is guarded by the lock.
private final class Load: @unchecked Sendable {
    private static let keysPerClient = 100
    private static let batchKeys = (0..<10).map { "b\($0)" }
    private static let scriptKeys = (0..<6).map { "s\($0)" }
    /// Sets the declared keys, and the keys in the arguments after the first, to the first argument.
    private static let script = """
        for _, key in ipairs(KEYS) do redis.call('set', key, ARGV[1]) end
        for index = 2, #ARGV do redis.call('set', ARGV[index], ARGV[1]) end
        return redis.status_reply('OK')
        """
    /// The same script, with so much work that it continues without locks.
    private static let slowScript = "local x = 0 for i = 1, 500000 do x = x + i end " + script
    private static let transactionKeys = (0..<10).map { "x\($0)" }

    private let clients: Int
    private let lock = Lock()
    private let changed = Condition()
    private var total = 0
    private var running = 0
    /// For each key, the highest number that was acknowledged or read, and the highest number that was sent.
    private var floor: [String: Int] = [:]
    private var sent: [String: Int] = [:]
    private var next: [Int]
    private var nextBatch = 1
    /// The number of the last acknowledged batch, and of the last batch sent.
    private var batchFloor = 0
    /// The number of the last acknowledged transaction, and of the next one.
    private var transactionFloor = 0
    private var nextTransaction = 1
    private var scriptFloor = 0
    private var nextScript = 1

    init(clients: Int) {
        self.clients = clients
        next = Array(repeating: 1, count: clients)
    }

    var acknowledged: Int { lock.withLock { total } }

    func waitUntil(acknowledged count: Int) {
        // If all clients have failed, no further write is acknowledged.
        lock.withLock { while total < count, running > 0 { changed.wait(lock) } }
    }

    func start(_ daemon: DaemonProcess, window: Int) throws -> [WorkThread] {
        let connections = try (0..<(clients + 4)).map { _ in Handed(try daemon.connect()) }
        lock.withLock { running = connections.count }
        return connections.enumerated().map { index, connection in
            WorkThread(name: "load-\(index)") { [self] in
                // Ends with an error when the daemon is killed.
                try? work(index, connection.client, window)
                lock.withLock {
                    running -= 1
                    changed.broadcast()
                }
            }
        }
    }

    /// Moves a client to the only thread that uses it, so that `@unchecked Sendable` is safe.
    private final class Handed: @unchecked Sendable {
        let client: SocketClient
        init(_ client: SocketClient) { self.client = client }
    }

    private func work(_ index: Int, _ client: SocketClient, _ window: Int) throws {
        while true {
            if index < clients {
                try write(index, client, window)
            } else if index == clients {
                try writeBatch(client)
            } else if index == clients + 1 {
                try writeTransaction(client)
            } else if index == clients + 2 {
                try writeScript(client)
            } else {
                try read(client, window)
            }
        }
    }

    private func key(_ client: Int, _ number: Int) -> String { "c\(client):\(number % Self.keysPerClient)" }

    private func write(_ index: Int, _ client: SocketClient, _ window: Int) throws {
        let first = lock.withLock {
            defer { next[index] += window }
            for number in next[index]..<(next[index] + window) { sent[key(index, number)] = number }
            return next[index]
        }
        try client.send((first..<(first + window)).flatMap { encodeRequest(["SET", key(index, $0), "\($0)"]) })
        for number in first..<(first + window) {
            guard try client.receive() == Array("+OK\r\n".utf8) else { continue }
            acknowledge { floor[key(index, number)] = number }
        }
    }

    private func writeBatch(_ client: SocketClient) throws {
        let number = lock.withLock {
            defer { nextBatch += 1 }
            return nextBatch
        }
        let words =
            number % 3 == 0
            ? ["DEL"] + Self.batchKeys : ["MSET"] + Self.batchKeys.flatMap { [$0, "\(number)"] }
        let reply = try client.call(words)
        if reply.first != UInt8(ascii: "-") { acknowledge { batchFloor = number } }
    }

    private func writeTransaction(_ client: SocketClient) throws {
        let number = lock.withLock {
            defer { nextTransaction += 1 }
            return nextTransaction
        }
        var commands = [["MULTI"]] + Self.transactionKeys.map { ["SET", $0, "\(number)"] }
        commands += [["SELECT", "other"], ["SET", "x0", "\(number)"], ["SELECT", "0"], ["EXEC"]]
        try client.send(commands.flatMap { encodeRequest($0) })
        let replies = try client.receive(commands.count)
        let expected = "*13\r\n" + String(repeating: "+OK\r\n", count: 13)
        if replies.last == Array(expected.utf8) { acknowledge { transactionFloor = number } }
    }

    private func verifyTransaction(_ client: SocketClient, _ when: String) throws {
        var found = try Self.transactionKeys.map { Self.number(try client.call(["GET", $0])) ?? 0 }
        _ = try client.call("SELECT other")
        found.append(Self.number(try client.call(["GET", "x0"])) ?? 0)
        _ = try client.call("SELECT 0")
        #expect(found.allSatisfy { $0 == found[0] }, "\(when): half a transaction: \(found)")
        let (least, last) = lock.withLock { (transactionFloor, nextTransaction - 1) }
        #expect(
            (least...max(least, last)).contains(found[0]), "\(when): transaction \(least) was acknowledged: \(found)")
        lock.withLock { transactionFloor = found[0] }
    }

    private func writeScript(_ client: SocketClient) throws {
        let number = lock.withLock {
            defer { nextScript += 1 }
            return nextScript
        }
        let (keys, count) = (Self.scriptKeys, [Self.scriptKeys.count, 1, 0][number % 3])
        let words =
            ["EVAL", number % 30 == 0 ? Self.slowScript : Self.script, "\(count)"] + keys.prefix(count) + ["\(number)"]
            + keys.dropFirst(count)
        if try client.call(words) == Array("+OK\r\n".utf8) { acknowledge { scriptFloor = number } }
    }

    private func verifyScript(_ client: SocketClient, _ when: String) throws {
        let found = try Self.scriptKeys.map { Self.number(try client.call(["GET", $0])) ?? 0 }
        #expect(found.allSatisfy { $0 == found[0] }, "\(when): half a script: \(found)")
        let (least, last) = lock.withLock { (scriptFloor, nextScript - 1) }
        #expect((least...max(least, last)).contains(found[0]), "\(when): script \(least) was acknowledged: \(found)")
        lock.withLock { scriptFloor = found[0] }
    }

    private func read(_ client: SocketClient, _ window: Int) throws {
        try client.send((0..<window).flatMap { encodeRequest(["GET", key(0, $0)]) })
        for number in 0..<window {
            guard let value = Self.number(try client.receive()) else { continue }
            let key = key(0, number)
            lock.withLock { floor[key] = max(floor[key] ?? 0, value) }
        }
    }

    private func acknowledge(_ change: () -> Void) {
        lock.withLock {
            change()
            total += 1
            changed.broadcast()
        }
    }

    private static func number(_ reply: [UInt8]) -> Int? {
        let lines = String(decoding: reply, as: UTF8.self).split(separator: "\r\n")
        return lines.count == 2 ? Int(lines[1]) : nil
    }

    /// Compares the daemon's data after a kill with the recorded writes. Acknowledged writes must be stored. Values
    /// that were never sent must not be.
    func verify(_ client: SocketClient, _ when: String) throws {
        for (key, highest) in lock.withLock({ sent }) {
            let value = Self.number(try client.call(["GET", key])) ?? 0
            let least = lock.withLock { floor[key] ?? 0 }
            #expect(value >= least, "\(when): \(key) was acknowledged or read as \(least), found \(value)")
            #expect(value <= highest, "\(when): \(key) was never set to \(value), at most to \(highest)")
            lock.withLock { floor[key] = value }
        }
        try verifyTransaction(client, when)
        try verifyScript(client, when)
        let batch = try Self.batchKeys.map { Self.number(try client.call(["GET", $0])) }
        #expect(batch.allSatisfy { $0 == batch[0] }, "\(when): half a batch: \(batch)")
        let (least, last) = lock.withLock { (batchFloor, nextBatch - 1) }
        let possible = (least...max(least, last)).map { $0 == 0 || $0 % 3 == 0 ? nil : $0 }
        #expect(possible.contains(batch[0]), "\(when): batch \(least) was acknowledged, found \(batch)")
        lock.withLock { batchFloor = last }
        // An unacknowledged batch may or may not be stored. Remove it, so that the state is known.
        _ = try client.call(["DEL"] + Self.batchKeys)
        lock.withLock {
            nextBatch += 3 - nextBatch % 3
            batchFloor = nextBatch
            nextBatch += 1
        }
    }
}
