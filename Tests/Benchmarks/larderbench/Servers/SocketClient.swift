import LarderPlatform
import LarderRESP

/// One blocking connection to a server, to fill and query it. Not used for measuring.
final class SocketClient {
    private let descriptor: Int32
    private var parser = ReplyParser()

    init(path: String) throws(BenchError) {
        descriptor = try BenchError.mapping { () throws(FileError) in try UnixSocket.connected(to: path) }
    }

    deinit { close(descriptor) }

    func ask(_ words: [String]) throws(BenchError) -> RESPValue {
        var request: [UInt8] = []
        RequestEncoder.encode(words, into: &request)
        return try ask(request)
    }

    /// Sends a request as it is.
    func ask(_ request: [UInt8]) throws(BenchError) -> RESPValue {
        try send(request)
        return try reply()
    }

    /// Checks that the server has `count` entries. If some were missing, their GETs would be misses.
    func checkCount(_ count: Int) throws(BenchError) {
        let found = try entryCount()
        guard found == count else { throw BenchError("DBSIZE is \(found) after \(count) keys were stored") }
    }

    func entryCount() throws(BenchError) -> Int {
        let answer = try ask(["DBSIZE"])
        guard case .integer(let count) = answer else { throw BenchError("DBSIZE was answered with \(answer)") }
        return Int(count)
    }

    /// Returns a number from a section of INFO.
    func infoNumber(_ section: String, _ field: String) throws(BenchError) -> Int {
        guard case .bulk(let bytes) = try ask(["INFO", section]) else { throw BenchError("unexpected answer to INFO") }
        for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
            guard line.hasPrefix(field + ":"), let number = Int(line.dropFirst(field.count + 1)) else { continue }
            return number
        }
        throw BenchError("INFO \(section) has no \(field)")
    }

    private func send(_ bytes: [UInt8]) throws(BenchError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { unistdWrite(descriptor, $0) }
            guard count > 0 else { throw .system("write to the server") }
            rest = rest.dropFirst(count)
        }
    }

    private func reply() throws(BenchError) -> RESPValue {
        while true {
            if let value = try parsed() { return value }
            try receive()
        }
    }

    /// Returns the next message of a subscription; nil if none arrives before `end`, a time of ``Clocks/monotonic()``.
    func message(before end: Double) throws(BenchError) -> RESPValue? {
        while true {
            if let value = try parsed() { return value }
            try Interruption.check()
            let seconds = end - Clocks.monotonic()
            guard seconds > 0 else { return nil }
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if systemPoll(&entry, 1, Int32(min(seconds, 0.5) * 1000) + 1) > 0 { try receive() }
        }
    }

    private func parsed() throws(BenchError) -> RESPValue? {
        do { return try parser.next() } catch {
            throw BenchError("the server's answer is not the protocol: \(error)")
        }
    }

    private func receive() throws(BenchError) {
        let count = unistdRead(descriptor, parser.writableSpace(atLeast: 65_536))
        guard count > 0 else { throw BenchError("the server ended the connection") }
        parser.didWrite(count)
    }
}
