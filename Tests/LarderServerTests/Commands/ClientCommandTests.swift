import LarderCommandCatalog
import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

@Suite struct ClientCommandTests {
    /// Splits a line of CLIENT LIST into its fields, as clients do.
    private func fields(_ line: String) -> [String: String] {
        var fields: [String: String] = [:]
        for part in line.split(separator: " ") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            #expect(pair.count == 2, "\(part)")
            fields[pair[0]] = pair.last
        }
        return fields
    }

    private func lines(_ reply: String) -> [String] {
        reply.split(separator: "\r\n").dropFirst().joined().split(separator: "\n").map(String.init)
    }

    /// The memory of a client, without its requests, replies and queue.
    private func otherMemory(_ fields: [String: String]) -> Int {
        func number(_ name: String) -> Int { fields[name].flatMap { Int($0) } ?? 0 }
        return number("tot-mem") - number("qbuf") - number("omem") - number("multi-mem")
    }

    @Test("CLIENT LIST describes each connection") func listing() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        #expect(other("CLIENT SETNAME him") == Wire.ok)
        #expect(other("CLIENT SETINFO LIB-NAME lib") == Wire.ok)
        #expect(other("SELECT books") == Wire.ok)
        #expect(other("WATCH a b") == Wire.ok)
        #expect(other("MULTI") == Wire.ok)
        #expect(other("GET a") == "+QUEUED\r\n")
        let all = lines(call("CLIENT LIST")).map { fields($0) }
        #expect(all.count == 2)
        let own = try #require(all.first)
        #expect(own["id"] == "\(call.session.id)" && own["name"] == "" && own["db"] == "0" && own["multi"] == "-1")
        #expect(own["cmd"] == "client|list" && own["flags"] == "U" && own["resp"] == "2")
        let his = try #require(all.last)
        #expect(his["name"] == "him" && his["lib-name"] == "lib" && his["db"] == "books" && his["multi"] == "1")
        #expect(his["watch"] == "2" && his["flags"] == "xU")
        #expect(otherMemory(his) > 400 && otherMemory(own) == 0)
        #expect(lines(call("CLIENT LIST ID \(other.session.id) 99")).count == 1)
        #expect(call("CLIENT LIST TYPE pubsub") == Wire.bulk(""))
        #expect(lines(call("CLIENT INFO")).map { fields($0)["id"] } == ["\(call.session.id)"])
        #expect(call("CLIENT LIST").hasPrefix("$"))
        _ = call("HELLO 3")
        #expect(call("CLIENT LIST").hasPrefix("="))
        other.session.end()
        #expect(lines(call("CLIENT LIST")).count == 1)
    }

    @Test func listingShowsTheProtocolAndTheLiveQueriesOfOthers() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        func listed() throws -> [String: String] { fields(try #require(lines(call("CLIENT LIST")).last)) }
        _ = call(["SET", "k", "\"\(String(repeating: "x", count: 10_000))\""])
        _ = other("HELLO 3")
        #expect(other("QUERY LIVE").hasPrefix("*2\r\n:1\r\n"))
        var his = try listed()
        #expect(his["resp"] == "3" && his["live"] == "1" && otherMemory(his) > 10_000)
        #expect(other("RESET") == "+RESET\r\n")
        his = try listed()
        #expect(his["resp"] == "2" && his["live"] == "0" && otherMemory(his) == 0)
    }

    @Test("CLIENT KILL closes the selected connections") func killing() throws {
        let server = try SocketlessServer()
        let clients = (0..<5).map { _ in server.connect() }
        let call = clients[0]
        #expect(call("CLIENT KILL ID \(clients[1].session.id)") == Wire.int(1))
        clients[1].feed("PING\r\n".utf8)
        #expect(clients[1].session.isClosing && clients[1].takeSendable() == "")
        #expect(call("CLIENT KILL ID \(call.session.id)") == Wire.int(0), "the client itself is skipped")
        #expect(call("CLIENT KILL USER default TYPE normal ID \(clients[2].session.id)") == Wire.int(1))
        clients[1].session.end()
        clients[2].session.end()
        #expect(call("CLIENT KILL TYPE pubsub") == Wire.int(0))
        #expect(call("CLIENT KILL ADDR /a/socket:0 LADDR /a/socket:0") == Wire.int(2))
        #expect(!call.session.isClosing)
        #expect(call("CLIENT KILL SKIPME no TYPE normal ID \(call.session.id)") == Wire.int(1), "the reply comes first")
        #expect(call.session.isClosing)
    }

    @Test("CLIENT REPLY suppresses replies") func replyModes() throws {
        let call = try SocketlessServer().connect()
        call.feed("CLIENT REPLY OFF\r\nSET a 1\r\nGET a\r\nKEYS *\r\nNOSUCH\r\nCLIENT REPLY ON\r\nGET a\r\n".utf8)
        call.feed("CLIENT REPLY SKIP\r\nGET a\r\nCLIENT REPLY SKIP\r\nDBSIZE\r\nPING\r\n".utf8)
        #expect(call("PING") == Wire.ok + Wire.bulk("1") + "+PONG\r\n+PONG\r\n")
    }

    @Test("CLIENT PAUSE delays commands until the pause is over") func pausing() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        #expect(call("SET a 1") == Wire.ok)
        #expect(call("CLIENT PAUSE 1000 WRITE") == Wire.ok)
        #expect(other("GET a") == Wire.bulk("1"))
        #expect(other("SET a 2") == "")
        #expect(call("GET a") == Wire.bulk("1"))
        server.time.advance(milliseconds: 1000)
        other.run()
        server.commit()
        #expect(other.takeSendable() == Wire.ok)
        #expect(call("CLIENT PAUSE 1000") == Wire.ok)
        #expect(other("PING") == "")
        server.state.pause.end()
        other.run()
        #expect(other.takeSendable() == "+PONG\r\n")
    }

    @Test("commands need the password if one is set") func passwords() throws {
        let server = try SocketlessServer(password: "secret")
        let call = server.connect()
        let denied = Wire.error("NOAUTH Authentication required.")
        for line in ["PING", "GET a", "SET a 1", "MULTI", "CLIENT ID", "MGET a"] { #expect(call(line) == denied) }
        #expect(call("HELLO 3").hasPrefix("-NOAUTH HELLO must be called"))
        #expect(call("AUTH wrong").hasPrefix("-WRONGPASS"))
        #expect(call("AUTH secret2").hasPrefix("-WRONGPASS"))
        #expect(call("AUTH nobody secret").hasPrefix("-WRONGPASS"))
        #expect(call("GET a") == denied)
        #expect(call("AUTH secret") == Wire.ok)
        #expect(call("GET a") == Wire.null)
        #expect(call("RESET") == "+RESET\r\n")
        #expect(call("GET a") == denied)
        #expect(call("HELLO 3 AUTH default secret").hasPrefix("%7"))
        #expect(call("GET a") == Wire.null3)
        #expect(call("QUIT") == Wire.ok)
    }

    @Test("RESET restores the initial state of a connection") func resetting() throws {
        let call = try SocketlessServer().connect()
        for line in ["HELLO 3", "SELECT 4", "CLIENT SETNAME me", "WATCH a", "MULTI", "SET a 1"] { _ = call(line) }
        #expect(call("RESET") == "+RESET\r\n")
        #expect(call("EXEC") == Wire.error("ERR EXEC without MULTI"))
        #expect(call("CLIENT GETNAME") == Wire.null)
        #expect(call("SET a 1") == Wire.ok)
        #expect(call("SELECT 0") == Wire.ok)
        #expect(call("GET a") == Wire.bulk("1"), "RESET had selected database 0")
    }

    /// CLIENT commands can name and close connections on other loops.
    @Test("CLIENT commands reach connections on other event loops", arguments: [1, 3])
    func clientCommandsAcrossEventLoops(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        let clients = try (0..<6).map { _ in try server.connect() }
        for (index, client) in clients.enumerated() { _ = try client.call("CLIENT SETNAME name\(index)") }
        let list = try clients[0].call("CLIENT LIST")
        for index in 0..<6 { #expect(list.contains(" name=name\(index) ")) }
        let id = try clients[5].call("CLIENT ID").filter(\.isNumber)
        #expect(try clients[0].call("CLIENT KILL ID \(id)") == ":1\r\n")
        #expect(try clients[5].receiveToEnd().isEmpty)
        while try server.connectedClients() > 6 { nap() }
        #expect(try !clients[0].call("CLIENT LIST").contains(" name=name5 "))
    }

    @Test("a paused connection resumes when the pause is over") func aPauseEnds() throws {
        let server = try InProcessServer(threads: 2)
        defer { server.stop() }
        let (client, other) = (try server.connect(), try server.connect())
        #expect(try client.call("CLIENT PAUSE 50") == "+OK\r\n")
        #expect(try other.call("SET a 1") == "+OK\r\n")
        #expect(try client.call("CLIENT PAUSE 100000 WRITE") == "+OK\r\n")
        try other.send(["SET", "a", "2"])
        #expect(try client.call("CLIENT UNPAUSE") == "+OK\r\n")
        #expect(try other.receive() == Array("+OK\r\n".utf8))
    }

    /// The commands before it may have begun a run on the fast path.
    @Test(arguments: [["SET a 1"], ["PING"], ["GET a", "GET a"], []])
    func clientPauseAppliesToTheNextCommandOfAPipeline(_ before: [String]) throws {
        let server = try SocketlessServer()
        #expect(server.connect()("SET other 1") == Wire.ok)
        let session = Session(id: 77, server: server.state)
        for line in before + ["CLIENT PAUSE 700 WRITE", "SET k v"] { session.parser.append(encodeRequest(line)) }
        guard case .paused = CommandRunner(session).run(outputBytesMax: .max) else {
            Issue.record("the pause was ignored")
            return
        }
        #expect(server.connect()("GET k") == Wire.null)
    }

    @Test func monitorAppliesToTheNextCommandOfAPipeline() throws {
        let server = try SocketlessServer()
        let session = Session(id: 77, server: server.state)
        for line in ["GET a", "MONITOR", "GET a"] { session.parser.append(encodeRequest(line)) }
        _ = CommandRunner(session).run(outputBytesMax: .max)
        let replies = session.replies.withBytes { String(decoding: $0, as: UTF8.self) }
        #expect(replies.contains("-ERR Replica can't interact with the keyspace"), "\(replies)")
    }

    @Test func theTimeOfShortCommandsIsSummedUpInNanoseconds() throws {
        let statistics = CommandStatistics()
        let counter = statistics.newCounter()
        for _ in 0..<10 { counter.ran(CommandMetadata.get.number, nanoseconds: 600, failed: false) }
        counter.ran(CommandMetadata.get.number, times: 10, nanosecondsEach: 150)
        #expect(statistics.sums[CommandMetadata.get.number]?.microseconds == 7)
    }
}
