import LarderPlatform

/// Finds the end and the kind of each reply to a GET or a SET in a server's output. Does not decode the reply: a load
/// generator must cost less than the server.
struct ReplyScanner {
    enum Kind { case stored, found, missing, error }

    struct Reply {
        let kind: Kind
        let byteCount: Int
    }

    let dialect: Dialect
    /// The start of the most frequent reply: to a GET, with a value of the expected size.
    private let usual: [UInt8]
    private let usualByteCount: Int
    /// The start of a reply to FETCH, and the reply's length without the two numbers at its end.
    private let fresh: [UInt8]
    private let freshByteCount: Int

    /// - Parameter valueBytes: the expected size of values.
    init(_ dialect: Dialect, valueBytes: Int) {
        self.dialect = dialect
        fresh = Array("*6\r\n$5\r\nfresh\r\n$\(valueBytes)\r\n".utf8)
        // The reply has the value, a null instead of a token, and a version of 16 digits.
        freshByteCount = fresh.count + valueBytes + "\r\n$-1\r\n$16\r\n0123456789abcdef\r\n".utf8.count
        switch dialect {
        case .resp, .null:
            usual = Array("$\(valueBytes)\r\n".utf8)
            usualByteCount = usual.count + valueBytes + 2
        case .memcached:
            usual = []
            usualByteCount = 0
        }
    }

    /// Returns the first reply in `bytes`; nil if it is incomplete.
    /// - Throws: if `bytes` is not a reply of the protocol, or has a value of an unexpected size.
    @inline(__always)
    func next(_ bytes: UnsafeRawBufferPointer) throws(BenchError) -> Reply? {
        if !usual.isEmpty, bytes.count >= usualByteCount, startsAsUsual(bytes) {
            return Reply(kind: .found, byteCount: usualByteCount)
        }
        switch dialect {
        case .resp, .null: return try nextRESP(bytes)
        case .memcached: return try nextMemcached(bytes)
        }
    }

    @inline(__always)
    private func startsAsUsual(_ bytes: UnsafeRawBufferPointer) -> Bool {
        usual.withUnsafeBytes {
            memcmp($0.baseAddress.unsafelyUnwrapped, bytes.baseAddress.unsafelyUnwrapped, $0.count)
        }
            == 0
    }

    private func nextRESP(_ bytes: UnsafeRawBufferPointer) throws(BenchError) -> Reply? {
        guard let line = try Self.lineByteCount(bytes) else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "+"), UInt8(ascii: ":"): return Reply(kind: .stored, byteCount: line)
        case UInt8(ascii: "-"): return Reply(kind: .error, byteCount: line)
        case UInt8(ascii: "$"):
            if bytes[1] == UInt8(ascii: "-") { return Reply(kind: .missing, byteCount: line) }
            // The usual reply was checked before. So this reply is incomplete, or its value has another size.
            guard line == usual.count, startsAsUsual(bytes) else { throw Self.unexpected(bytes, line) }
            return nil
        case UInt8(ascii: "*"): return try nextFetched(bytes, line)
        default: throw Self.unexpected(bytes, line)
        }
    }

    private func nextFetched(_ bytes: UnsafeRawBufferPointer, _ line: Int) throws(BenchError) -> Reply? {
        guard bytes.prefix(fresh.count).elementsEqual(fresh.prefix(bytes.count)) else {
            throw Self.unexpected(bytes, line)
        }
        guard bytes.count > freshByteCount else { return nil }
        var count = freshByteCount
        for _ in 0..<2 {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
            guard let number = try Self.lineByteCount(rest) else { return nil }
            count += number
        }
        return Reply(kind: .found, byteCount: count)
    }

    private func nextMemcached(_ bytes: UnsafeRawBufferPointer) throws(BenchError) -> Reply? {
        guard let line = try Self.lineByteCount(bytes) else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "V"):
            // VALUE <key> <flags> <bytes>\r\n<data>\r\nEND\r\n
            var size = 0
            var factor = 1
            var index = line - 3
            while index > 0, bytes[index] != UInt8(ascii: " ") {
                guard (0x30...0x39).contains(bytes[index]), factor < 1 << 40 else { throw Self.unexpected(bytes, line) }
                size += Int(bytes[index] - 0x30) * factor
                factor *= 10
                index -= 1
            }
            guard size <= Values.bytesMax else { throw Self.unexpected(bytes, line) }
            let all = line + size + 7
            return bytes.count >= all ? Reply(kind: .found, byteCount: all) : nil
        case UInt8(ascii: "E"):
            // END, or ERROR
            return Reply(kind: line == 5 && bytes[1] == UInt8(ascii: "N") ? .missing : .error, byteCount: line)
        case UInt8(ascii: "S"):
            // STORED, or SERVER_ERROR
            return Reply(kind: bytes[1] == UInt8(ascii: "T") ? .stored : .error, byteCount: line)
        case UInt8(ascii: "C"), UInt8(ascii: "N"): return Reply(kind: .error, byteCount: line)
        default: throw Self.unexpected(bytes, line)
        }
    }

    /// The length of the first line, including its line end; at least 3.
    private static func lineByteCount(_ bytes: UnsafeRawBufferPointer) throws(BenchError) -> Int? {
        guard let start = bytes.baseAddress, bytes.count > 0,
            let end = memchr(start, 0x0A, min(bytes.count, 4096))
        else {
            guard bytes.count < 4096 else { throw BenchError("a reply's first line does not end") }
            return nil
        }
        let count = UnsafeRawPointer(end) - start + 1
        guard count >= 3, bytes[count - 2] == 0x0D else { throw unexpected(bytes, count) }
        return count
    }

    private static func unexpected(_ bytes: UnsafeRawBufferPointer, _ count: Int) -> BenchError {
        let text = String(decoding: bytes.prefix(min(count, 80)), as: UTF8.self)
        return BenchError("the server answered with \(text.debugDescription)")
    }
}
