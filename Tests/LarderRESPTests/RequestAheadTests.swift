import Testing

@testable import LarderRESP

/// Tests of looking at the requests behind the current command. They must be exactly those that the parser would return
/// one by one.
@Suite struct RequestAheadTests {
    private static func request(_ words: String...) -> [UInt8] {
        var text = "*\(words.count)\r\n"
        for word in words { text += "$\(word.utf8.count)\r\n\(word)\r\n" }
        return Array(text.utf8)
    }

    private static func text(_ arguments: RequestArguments) -> [String] {
        (0..<arguments.count).map { String(decoding: arguments[$0], as: UTF8.self) }
    }

    /// Returns the next command and the requests behind it that are found ahead, at most `most`; nil if there is no
    /// complete command. Then skips the command and `skipping` of these requests.
    private static func take(
        _ parser: inout RequestParser, most: Int = 8, skipping: Int = .max
    ) throws -> [[String]]? {
        guard try parser.next() else { return nil }
        return withUnsafeTemporaryAllocation(of: ArgumentSlice.self, capacity: 8) { slices in
            var (found, place, end) = ([text(parser.currentArguments())], 0, 0)
            var head = parser.currentHead()
            while found.count <= most, let arguments = parser.requestAhead(&place, &head, slices) {
                found.append(text(arguments))
                if head.isRepeated { #expect(found.suffix(2).first?.first == found.last?.first) }
                if found.count - 1 <= skipping { end = place }
            }
            parser.skip(to: end)
            return found
        }
    }

    @Test func requestsAheadAreFoundUpToAnUnusualOne() throws {
        var parser = RequestParser()
        let (key, long) = (String(repeating: "k", count: 9999), String(repeating: "k", count: 10_000))
        parser.append(
            Self.request("PING") + Self.request("GET", "a") + Self.request("set", "", key) + Self.request("GET", long)
                + Self.request("GET", "b") + Self.request("MGET", "1", "2", "3", "4", "5", "6", "7", "8")
                + Self.request("GET", "c"))
        #expect(try Self.take(&parser) == [["PING"], ["GET", "a"], ["set", "", key]])
        #expect(try Self.take(&parser) == [["GET", long], ["GET", "b"]])
        #expect(try Self.take(&parser) == [["MGET", "1", "2", "3", "4", "5", "6", "7", "8"], ["GET", "c"]])
        #expect(try Self.take(&parser) == nil)
        #expect(parser.bufferedBytes == 0)
    }

    @Test("only requests with the same name and number of arguments are reported as repeated")
    func repeatedRequests() throws {
        var parser = RequestParser()
        let requests: [([String], Bool)] = [
            (["GET", "a"], false), (["GET", "bcd"], true), (["get", "e"], false), (["get", ""], true),
            (["SET", "a", "b"], false), (["SET", "a", "b"], true), (["SET", "a", "b", "NX"], false),
            (["EXPIRE", "a", "1"], false), (["EXPIRE", "b", "2"], true), (["PEXPIRE", "b", "2"], false),
            (["PEXPIRE", "b", "2"], false), (["GET", "a"], false), (["SET", "a"], false), (["GET", "a", "b"], false),
        ]
        parser.append(
            requests.flatMap { words, _ in
                Array("*\(words.count)\r\n".utf8) + words.flatMap { Array("$\($0.utf8.count)\r\n\($0)\r\n".utf8) }
            })
        #expect(try parser.next())
        try withUnsafeTemporaryAllocation(of: ArgumentSlice.self, capacity: 8) { slices in
            var (place, head) = (0, parser.currentHead())
            for (words, isRepeated) in requests.dropFirst() {
                let arguments = try #require(parser.requestAhead(&place, &head, slices))
                #expect(Self.text(arguments) == words && head.isRepeated == isRepeated, "\(words)")
            }
        }
    }

    @Test func requestsThatAreNotSkippedAreFoundAgain() throws {
        var parser = RequestParser()
        parser.append((0..<6).flatMap { Self.request("GET", "\($0)") })
        #expect(try Self.take(&parser, most: 1) == [["GET", "0"], ["GET", "1"]])
        #expect(try Self.take(&parser, skipping: 1)?.map { $0[1] } == ["2", "3", "4", "5"])
        #expect(try Self.take(&parser, skipping: 0) == [["GET", "4"], ["GET", "5"]])
        #expect(try Self.take(&parser) == [["GET", "5"]])
    }

    /// Requests that only look similar are left to the parser.
    @Test(arguments: [
        "*2\r\n$3\r\nGET\r\n$02\r\nab\r\n", "*2\r\n$3\r\nGET\r\n$2\r\na\r\n", "*2\r\n$3\r\nGET\r\n$-1\r\n",
        "*2\r\n$3\r\nGET\r\n$10000\r\n", "GET a\r\n", "*2\r\n$3\r\nGET\n$1\r\na\r\n", "*2\r\n$3\r\nGET\r\n:1\r\na\r\n",
        "*2\r\n$3\r\nGET\r\n$1\r\naXX\r\n", "\r\n", "*0\r\n", "*-1\r\n", "*x\r\n", "*01\r\n$1\r\na\r\n", "*", "*2",
        "*2\r\n",
        "*2\r\n$3\r\nGET\r\n$1\r\na", "*2\r\n$3\r\nGET\r\n$1\r\na\r", "*9\r\n",
    ])
    func unusualRequestsAreLeftToTheParser(_ text: String) throws {
        var parser = RequestParser()
        parser.append(Self.request("PING") + Array(text.utf8))
        #expect(try Self.take(&parser) == [["PING"]])
    }

    /// Clients that are not authenticated have stricter limits, which only the parser checks.
    @Test func nothingIsFoundAheadForUnauthenticatedClients() throws {
        var parser = RequestParser()
        parser.isUnauthenticated = true
        parser.append(Self.request("AUTH", "secret") + Self.request("GET", "a"))
        #expect(try Self.take(&parser) == [["AUTH", "secret"]])
        #expect(try Self.take(&parser) == [["GET", "a"]])
    }

    /// The commands are the same wherever the bytes are split, and whether they are lent or copied.
    @Test(arguments: [true, false]) func requestsAreParsedWhereverTheyAreSplit(_ lends: Bool) throws {
        var bytes = Self.request("GET", "first") + Self.request("GET", "second") + Self.request("SET", "x", "y")
        bytes += Self.request("GET", "third")
        let expected = [["GET", "first"], ["GET", "second"], ["SET", "x", "y"], ["GET", "third"]]
        for cut in 0...bytes.count {
            var parser = RequestParser()
            var seen: [[String]] = []
            for part in [Array(bytes[..<cut]), Array(bytes[cut...])] {
                var part = part
                try part.withUnsafeMutableBytes { part in
                    if lends { parser.borrow(part) } else { parser.append(UnsafeRawBufferPointer(part)) }
                    while let run = try Self.take(&parser) { seen += run }
                    if lends { parser.endBorrowing() }
                }
            }
            #expect(seen == expected, "cut at \(cut)")
        }
    }
}
