import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests that a connection's replies do not depend on how its bytes arrive.
@Suite struct SessionFixtureTests {
    struct Fixture: CustomStringConvertible, Sendable {
        let name: String
        let input: [UInt8]
        let output: String
        /// Whether the server closes the connection after the replies.
        let closes: Bool
        var description: String { name }

        init(_ name: String, _ input: String, _ output: String, closes: Bool = false) {
            self.name = name
            self.input = Array(input.utf8)
            self.output = output
            self.closes = closes
        }
    }

    private static func protocolError(_ text: String) -> String { Wire.error("ERR Protocol error: \(text)") }

    static let fixtures: [Fixture] = [
        Fixture("empty lines", "\r\n\n\r\nPING\r\n", "+PONG\r\n"),
        Fixture("inline", "SET k \"a b\"\r\nGET k\nEXISTS k nothing\r\n", Wire.ok + Wire.bulk("a b") + Wire.int(1)),
        Fixture("negative count", "*-10\r\n*0\r\nPING\r\n", "+PONG\r\n"),
        Fixture(
            "huge count", "PING\r\n*3000000000\r\n", "+PONG\r\n" + protocolError("invalid multibulk length"),
            closes: true),
        Fixture(
            "wrong header", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", protocolError("expected '$', got 'f'"),
            closes: true),
        Fixture(
            "negative length", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n", protocolError("invalid bulk length"),
            closes: true),
        Fixture(
            "huge length", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n", protocolError("invalid bulk length"),
            closes: true),
        Fixture(
            "no number", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n", protocolError("invalid bulk length"), closes: true
        ),
        Fixture(
            "unbalanced quotes", "set \"\"\"test-key\"\"\" test-value\r\n",
            protocolError("unbalanced quotes in request"), closes: true),
        Fixture("NUL", "PING a\0b\r\n", Wire.bulk("a\0b")),
        Fixture("half a command", "PING\r\n*2\r\n$3\r\nGET\r\n$10\r\nabc", "+PONG\r\n"),
        Fixture(
            "nothing is run after a malformed command", "*1\r\nPING\r\nSET k v\r\n",
            protocolError("expected '$', got 'P'"), closes: true),
        Fixture("quit", "SET k v\r\nQUIT\r\nPING\r\n", Wire.ok + Wire.ok, closes: true),
        Fixture(
            "work and preparation in between",
            "SET a 1\r\nDBSIZE\r\nSELECT books\r\nGET a\r\nSET a 2\r\nKEYS *\r\nPURGE EXPIRED x\r\nSNAPSHOT OPEN\r\n"
                + "SET a 3\r\nGET a\r\nSNAPSHOT CLOSE\r\nGET a\r\nFLUSHALL\r\nEXISTS a\r\n",
            Wire.ok + Wire.int(1) + Wire.ok + Wire.null + Wire.ok + Wire.bulks("a") + Wire.syntaxError + Wire.ok
                + Wire.ok + Wire.bulk("2") + Wire.ok + Wire.bulk("3") + Wire.ok + Wire.int(0)),
        Fixture(
            "both protocols",
            "GET n\r\nHELLO 9\r\nMGET n n\r\nHELLO 3 BAD\r\nGET n\r\nSET n 1 XX\r\nPING\r\n",
            Wire.null + Wire.error("NOPROTO unsupported protocol version") + Wire.array(Wire.null, Wire.null)
                + Wire.error("ERR Syntax error in HELLO option 'BAD'") + Wire.null + Wire.null + "+PONG\r\n"),
        Fixture(
            "array and inline mixed", "*1\r\n$4\r\nPING\r\nPING x\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\nnosuch a\r\n",
            "+PONG\r\n" + Wire.bulk("x") + Wire.bulk("")
                + Wire.error("ERR unknown command 'nosuch', with args beginning with: 'a' ")),
    ]

    private func check(_ fixture: Fixture, _ pieces: [ArraySlice<UInt8>], _ server: SocketlessServer, _ how: String) {
        let call = server.connect()
        var output = ""
        for piece in pieces {
            call.feed(piece)
            server.commit()
            output += call.takeSendable()
        }
        #expect(output == fixture.output, "\(fixture.name), \(how)")
        #expect(call.session.isClosing == fixture.closes, "\(fixture.name), \(how)")
        call.session.end()
        let cleaner = server.connect()
        for name in ["0", "books"] { _ = cleaner("SELECT \(name)") + cleaner("DEL k a n x") }
    }

    @Test("input that arrives at once gets the expected replies", arguments: fixtures)
    func inputThatArrivesAtOnceIsParsed(_ fixture: Fixture) throws {
        check(fixture, [fixture.input[...]], try SocketlessServer(), "whole")
    }

    @Test("input that arrives byte by byte gets the same replies", arguments: fixtures)
    func inputThatArrivesByteByByteIsParsed(_ fixture: Fixture) throws {
        check(fixture, fixture.input.indices.map { fixture.input[$0...$0] }, try SocketlessServer(), "byte by byte")
    }

    @Test("input that arrives in two parts gets the same replies", arguments: fixtures)
    func inputThatArrivesInTwoPartsIsParsed(_ fixture: Fixture) throws {
        let server = try SocketlessServer()
        for index in fixture.input.indices {
            check(fixture, [fixture.input[..<index], fixture.input[index...]], server, "split at \(index)")
        }
    }
}
