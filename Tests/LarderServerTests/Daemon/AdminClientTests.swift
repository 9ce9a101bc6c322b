import LarderServer
import LarderTestSupport
import Testing

/// Tests of the commands that larderd's own `--purge` sends to a running daemon.
@Suite struct AdminClientTests {
    /// If SELECT is refused, the purge is not sent: it would empty the default database.
    @Test func theAdminClientSendsNoPURGEAfterARefusedSELECT() throws {
        let server = try FakeServer { request in
            request.name == "SELECT" ? .text("-ERR the database cannot be opened\r\n") : .text("+OK\r\n")
        }
        defer { server.stop() }
        let client = AdminClient(socketPath: server.path, password: Array("word".utf8), directory: "/")
        let replies = try client.request([["HELLO", "3"], ["SELECT", "books"], ["PURGE"]])
        #expect(replies.map(\.errorMessage) == [nil, "ERR the database cannot be opened"])
        #expect(server.requests == [["AUTH", "word"], ["SELECT", "books"]])
    }
}
