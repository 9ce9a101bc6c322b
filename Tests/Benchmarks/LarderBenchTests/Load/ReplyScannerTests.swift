import Testing

@testable import larderbench

@Suite struct ReplyScannerTests {
    /// The kinds of all replies in `text`, scanned in pieces of one size.
    private func kinds(_ scanner: ReplyScanner, _ text: String, piece: Int) throws -> [ReplyScanner.Kind] {
        var kinds: [ReplyScanner.Kind] = []
        var buffer: [UInt8] = []
        for byte in Array(text.utf8).chunked(piece) {
            buffer += byte
            while let reply = try buffer.withUnsafeBytes({ bytes throws(BenchError) in try scanner.next(bytes) }) {
                kinds.append(reply.kind)
                buffer.removeFirst(reply.byteCount)
            }
        }
        #expect(buffer.isEmpty)
        return kinds
    }

    @Test("replies in RESP are recognized", arguments: [1, 2, 3, 7, 1000]) func respReplies(piece: Int) throws {
        let scanner = ReplyScanner(.resp, valueBytes: 5)
        let text = "+OK\r\n$5\r\nhello\r\n$-1\r\n-ERR no\r\n$5\r\n\r\n$5\r\r\n:1\r\n"
        #expect(try kinds(scanner, text, piece: piece) == [.stored, .found, .missing, .error, .found, .stored])
    }

    @Test("replies to FETCH are recognized", arguments: [1, 2, 3, 7, 1000]) func fetchedReplies(piece: Int) throws {
        let scanner = ReplyScanner(.resp, valueBytes: 5)
        let text =
            "*6\r\n$5\r\nfresh\r\n$5\r\nhello\r\n$-1\r\n$16\r\n0123456789abcdef\r\n:0\r\n:604800000\r\n-ERR no\r\n"
        #expect(try kinds(scanner, text, piece: piece) == [.found, .error])
    }

    @Test("replies of memcached are recognized", arguments: [1, 2, 3, 7, 1000])
    func memcachedReplies(piece: Int) throws {
        let scanner = ReplyScanner(.memcached, valueBytes: 5)
        let text =
            "STORED\r\nVALUE key:000000000001 0 5\r\nEND\r\n\r\nEND\r\nEND\r\nERROR\r\nSERVER_ERROR out of memory\r\n"
            + "CLIENT_ERROR bad\r\nNOT_STORED\r\n"
        #expect(
            try kinds(scanner, text, piece: piece) == [.stored, .found, .missing, .error, .error, .error, .error])
    }

    @Test(arguments: [
        (Dialect.resp, "$6\r\nhello!\r\n"), (.resp, "HTTP/1.1 400\r\n"), (.resp, "\r\n"), (.resp, "+OK\n"),
        (.resp, "*1\r\n"), (.memcached, "VALUE k 0 99999999\r\n"), (.memcached, "VALUE k 0 -1\r\n"),
        (.memcached, "VALUE k 0 99999999999999999999\r\n"), (.memcached, "+OK\r\n"),
    ])
    func malformedRepliesAreErrors(dialect: Dialect, text: String) {
        let scanner = ReplyScanner(dialect, valueBytes: 5)
        #expect(throws: BenchError.self) {
            try Array(text.utf8).withUnsafeBytes { bytes throws(BenchError) in try scanner.next(bytes) }
        }
    }

    @Test func aReplyLineThatNeverEndsIsAnError() {
        let line = [UInt8](repeating: 0x2B, count: 5000)
        #expect(throws: BenchError.self) {
            try line.withUnsafeBytes { bytes throws(BenchError) in
                try ReplyScanner(.resp, valueBytes: 5).next(bytes)
            }
        }
    }
}

extension [UInt8] {
    func chunked(_ size: Int) -> [ArraySlice<UInt8>] {
        stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}
