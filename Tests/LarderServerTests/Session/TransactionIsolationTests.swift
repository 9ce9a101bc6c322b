import LarderEngine
import LarderPlatform
import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of concurrent transactions of several connections on several loops.
@Suite struct TransactionIsolationTests {
    private static let accounts = 8

    /// Clients move amounts between accounts with WATCH, GET, MULTI, SET, SET, EXEC. Other clients read all accounts in
    /// one transaction. The total is the same in every read.
    @Test("concurrent transfers between accounts keep the total", arguments: [2, 4])
    func concurrentTransfersKeepTheTotal(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads) { $0.durability = .os }
        defer { server.stop() }
        let setup = try server.connect()
        for account in 0..<Self.accounts { _ = try setup.call("SET account\(account) 1000") }
        let failures = Recorder<String>()
        let moved = Recorder<Int>()
        let workers = (0..<6).map { worker in
            WorkThread(name: "worker-\(worker)") {
                do {
                    let client = try server.connect()
                    var generator = SeededGenerator(seed: UInt64(worker))
                    if worker < 4 {
                        moved.add(try Self.move(client, &generator, rounds: 300))
                    } else {
                        for _ in 0..<300 {
                            let sum = try Self.sum(client)
                            if sum != Self.accounts * 1000 { failures.add("a transaction saw the sum \(sum)") }
                        }
                    }
                } catch {
                    failures.add("\(error)")
                }
            }
        }
        for worker in workers { worker.join() }
        #expect(failures.all.isEmpty, "\(failures.all)")
        #expect(try Self.sum(setup) == Self.accounts * 1000)
        #expect(moved.all.reduce(0, +) > 0)
    }

    private static func integers(_ reply: [UInt8]) -> [Int] {
        String(decoding: reply, as: UTF8.self).split(separator: "\r\n")
            .filter { !$0.hasPrefix("$") && !$0.hasPrefix("*") }.compactMap { Int($0) }
    }

    private static func sum(_ client: SocketClient) throws -> Int {
        let commands = [["MULTI"]] + (0..<accounts).map { ["GET", "account\($0)"] } + [["EXEC"]]
        try client.send(commands.flatMap { encodeRequest($0) })
        return integers(try client.receive(commands.count)[commands.count - 1]).reduce(0, +)
    }

    /// Moves random amounts between accounts.
    /// - Returns: the number of transactions that were executed.
    private static func move(
        _ client: SocketClient, _ generator: inout SeededGenerator, rounds: Int
    ) throws -> Int {
        var done = 0
        for _ in 0..<rounds {
            let from = Int.random(in: 0..<accounts, using: &generator)
            let to = (from + Int.random(in: 1..<accounts, using: &generator)) % accounts
            _ = try client.call("WATCH account\(from) account\(to)")
            let balances = integers(try client.call(["MGET", "account\(from)", "account\(to)"]))
            guard balances.count == 2 else { continue }
            let amount = Int.random(in: 0...100, using: &generator)
            try client.send(
                [
                    ["MULTI"], ["SET", "account\(from)", "\(balances[0] - amount)"],
                    ["SET", "account\(to)", "\(balances[1] + amount)"], ["EXEC"],
                ].flatMap { encodeRequest($0) })
            let replies = try client.receive(4)
            if replies[3] != Array("*-1\r\n".utf8) { done += 1 }
        }
        return done
    }

    /// Several clients increment a counter with WATCH and EXEC. In the end, the counter equals the number of executed
    /// transactions: no update is lost.
    @Test(arguments: [2, 4]) func concurrentIncrementsWithWATCHLoseNoUpdate(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads) { $0.durability = .os }
        defer { server.stop() }
        let done = Recorder<Int>()
        let failures = Recorder<String>()
        let workers = (0..<4).map { worker in
            WorkThread(name: "worker-\(worker)") {
                do {
                    let client = try server.connect()
                    var count = 0
                    for _ in 0..<200 {
                        _ = try client.call("WATCH counter")
                        let value = Self.integers(try client.call(["GET", "counter"])).first ?? 0
                        try client.send(
                            [["MULTI"], ["SET", "counter", "\(value + 1)"], ["EXEC"]].flatMap { encodeRequest($0) })
                        if try client.receive(3)[2] == Array("*1\r\n+OK\r\n".utf8) { count += 1 }
                    }
                    done.add(count)
                } catch {
                    failures.add("\(error)")
                }
            }
        }
        for worker in workers { worker.join() }
        #expect(failures.all.isEmpty, "\(failures.all)")
        let count = done.all.reduce(0, +)
        #expect(count > 0)
        #expect(Self.integers(try server.connect().call(["GET", "counter"])) == [count])
    }

    /// A connection that closes during a transaction changes no data.
    @Test func aLostConnectionExecutesNoQueuedCommands() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        _ = try client.call("WATCH a")
        _ = try client.call("MULTI")
        #expect(try client.call("SET a 1") == "+QUEUED\r\n")
        client.close()
        let other = try server.connect()
        while try server.connectedClients() > 2 { nap() }
        #expect(try other.call("EXISTS a") == ":0\r\n")
    }

    /// If the commit of a transaction fails, all its replies are errors, and none of its changes is visible.
    @Test("if a commit fails, the transaction has no effect and each reply is an error")
    func aFailedCommitOfATransactionHasNoEffect() throws {
        let isFailing = Guarded(false)
        let server = try SocketlessServer { options in
            options.beforeCommit = { () throws(LarderError) in
                if isFailing.value { throw LarderError(.io, "no space", operation: "test") }
            }
        }
        let call = server.connect()
        #expect(call("MSET a 1 b 1") == Wire.ok)
        for line in ["MULTI", "SET a 2", "SELECT 1", "GET a", "SELECT 0", "SET b 2", "GET b"] { _ = call(line) }
        isFailing.value = true
        let reply = call("EXEC")
        let elements = RawReply.split(Array(reply.utf8.dropFirst("*6\r\n".utf8.count)))
        #expect(reply.hasPrefix("*6\r\n"), "\(reply)")
        #expect(elements.count == 6 && elements.allSatisfy { $0.first == UInt8(ascii: "-") }, "\(reply)")
        #expect(call("MGET a b") == Wire.bulks("1", "1"))
    }
}
