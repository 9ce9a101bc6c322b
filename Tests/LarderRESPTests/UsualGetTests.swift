import Testing

@testable import LarderRESP

/// Tests of parsing several consecutive `GET key` requests in one call. The call must find exactly those requests that
/// the parser would return one by one.
@Suite struct UsualGetTests {
    private static func request(_ words: String...) -> [UInt8] {
        var text = "*\(words.count)\r\n"
        for word in words { text += "$\(word.utf8.count)\r\n\(word)\r\n" }
        return Array(text.utf8)
    }

    /// Returns the keys of the `GET` requests at the beginning, or the keys and values of the `SET` requests (`key=value`),
    /// and skips these requests.
    private static func take(_ parser: inout RequestParser, most: Int = 8, skipping: Int? = nil) -> [String] {
        withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 2 * most) { words in
            withUnsafeTemporaryAllocation(of: Int.self, capacity: most) { ends in
                let keys = UnsafeMutableBufferPointer(rebasing: words[..<most])
                let values = UnsafeMutableBufferPointer(rebasing: words[most...])
                func text(_ word: UnsafeRawBufferPointer) -> String { String(decoding: word, as: UTF8.self) }
                let (count, isSet) = parser.usualRun(keys, values, ends)
                let found = (0..<count).map { text(keys[$0]) + (isSet ? "=" + text(values[$0]) : "") }
                let skipped = min(skipping ?? found.count, found.count)
                if skipped > 0 { parser.skip(ends[skipped - 1]) }
                return found
            }
        }
    }

    private static func words(_ parser: inout RequestParser) throws -> [String]? {
        guard try parser.next() else { return nil }
        return (0..<parser.argumentCount).map { String(decoding: parser.argument($0), as: UTF8.self) }
    }

    @Test func consecutiveGetsAreTakenAndOtherCommandsAreLeft() throws {
        var parser = RequestParser()
        let long = String(repeating: "k", count: 999)
        parser.append(
            Self.request("GET", "a") + Self.request("get", "") + Self.request("gEt", long)
                + Self.request("DEL", "b", "c")
                + Self.request("GET", "d"))
        #expect(Self.take(&parser) == ["a", "", long])
        #expect(Self.take(&parser) == [])
        #expect(try Self.words(&parser) == ["DEL", "b", "c"])
        #expect(Self.take(&parser) == ["d"])
        #expect(Self.take(&parser) == [])
        #expect(try Self.words(&parser) == nil)
        #expect(parser.bufferedBytes == 0)
    }

    @Test func consecutiveSetsAreTakenAndOtherCommandsAreLeft() throws {
        var parser = RequestParser()
        let long = String(repeating: "v", count: 9999)
        parser.append(
            Self.request("SET", "a", "1") + Self.request("set", "", "") + Self.request("sEt", "b", long)
                + Self.request("GET", "a") + Self.request("SET", "c", "3", "EX", "10")
                + Self.request("SET", "d", long + "v") + Self.request("SET", "e", "5"))
        #expect(Self.take(&parser) == ["a=1", "=", "b=" + long])
        #expect(Self.take(&parser) == ["a"])
        #expect(Self.take(&parser) == [])
        #expect(try Self.words(&parser) == ["SET", "c", "3", "EX", "10"])
        #expect(Self.take(&parser) == [])
        #expect(try Self.words(&parser) == ["SET", "d", long + "v"])
        #expect(Self.take(&parser) == ["e=5"])
        #expect(try Self.words(&parser) == nil)
    }

    @Test func noMoreGetsAreTakenThanRequested() throws {
        var parser = RequestParser()
        parser.append((0..<5).flatMap { Self.request("GET", "\($0)") })
        #expect(Self.take(&parser, most: 2) == ["0", "1"])
        #expect(Self.take(&parser, most: 2, skipping: 1) == ["2", "3"])
        #expect(try Self.words(&parser) == ["GET", "3"])
        #expect(Self.take(&parser, skipping: 0) == ["4"])
        #expect(try Self.words(&parser) == ["GET", "4"])
    }

    /// Requests that only look similar are left to the parser.
    @Test(arguments: [
        "*2\r\n$3\r\nGEX\r\n$1\r\na\r\n", "*2\r\n$4\r\nMGET\r\n$1\r\na\r\n",
        "*3\r\n$3\r\nGET\r\n$1\r\na\r\n$1\r\nb\r\n",
        "*2\r\n$3\r\nGET\r\n$02\r\nab\r\n", "*2\r\n$3\r\nGET\r\n$2\r\na\r\n", "*2\r\n$3\r\nGET\r\n$-1\r\n",
        "*2\r\n$3\r\nGET\r\n$1000\r\n", "GET a\r\n", "*2\r\n$3\r\nGET\n$1\r\na\r\n", "*2\r\n$3\r\nGET\r\n:1\r\na\r\n",
        "*2\r\n$3\r\ng%t\r\n$1\r\na\r\n", "*2\r\n$3\r\nGET\r\n$1\r\naXX\r\n", "\r\n",
    ])
    func unusualRequestsAreLeftToTheParser(_ text: String) {
        var parser = RequestParser()
        parser.append(Array(text.utf8))
        #expect(Self.take(&parser) == [])
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
                    while true {
                        let run = Self.take(&parser)
                        seen += run.map {
                            $0.contains("=") ? ["SET"] + $0.split(separator: "=").map(String.init) : ["GET", $0]
                        }
                        if run.isEmpty {
                            guard let words = try Self.words(&parser) else { break }
                            seen.append(words)
                        }
                    }
                    if lends { parser.endBorrowing() }
                }
            }
            #expect(seen == expected, "cut at \(cut)")
        }
    }
}
