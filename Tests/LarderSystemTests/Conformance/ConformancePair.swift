import LarderTestSupport
import Testing

/// A connection to redis-server and a connection to larderd, which are sent the same requests.
struct ConformancePair {
    let redis: SocketClient
    let larder: SocketClient

    func send(_ bytes: [UInt8]) throws {
        try redis.send(bytes)
        try larder.send(bytes)
    }

    func replies() throws -> (redis: [UInt8], larder: [UInt8]) { (try redis.receive(), try larder.receive()) }

    func call(_ step: ConformanceStep) throws -> (redis: [UInt8], larder: [UInt8]) {
        try send(encodeRequest(step.words))
        return try replies()
    }

    // MARK: Comparing

    func expectSame(_ replies: (redis: [UInt8], larder: [UInt8]), _ step: ConformanceStep) {
        let isSame =
            switch step.comparison {
            case .exact: replies.redis == replies.larder
            case .unordered: Self.sorted(replies.redis) == Self.sorted(replies.larder)
            case .near: isNear(replies.redis, replies.larder, step)
            }
        #expect(isSame, "\(step.line): redis \(Self.shown(replies.redis)), larder \(Self.shown(replies.larder))")
    }

    static func shown(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.prefix(300), as: UTF8.self).debugDescription
    }

    /// Returns an array's length and its sorted elements. A reply that is not an array is returned unchanged.
    static func sorted(_ reply: [UInt8]) -> [[UInt8]] {
        guard reply.first == UInt8(ascii: "*"), let end = reply.firstIndex(of: 0x0A) else { return [reply] }
        let elements = RawReply.split(Array(reply[(end + 1)...]))
        return [Array(reply[...end])] + elements.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Whether two integers that are not negative differ by at most five seconds, in the unit of the command. Other
    /// replies must be equal.
    private func isNear(_ redis: [UInt8], _ larder: [UInt8], _ step: ConformanceStep) -> Bool {
        guard let first = Self.magnitude(redis), let second = Self.magnitude(larder) else { return redis == larder }
        let isMilliseconds = step.words.first?.first.map { $0 | 0x20 } == UInt8(ascii: "p")
        // Neither is negative: their difference cannot overflow.
        return abs(first - second) <= (isMilliseconds ? 5000 : 5)
    }

    /// Returns the integer in a reply; nil if it is negative, because negative integers have special meanings.
    private static func magnitude(_ reply: [UInt8]) -> Int? {
        guard reply.first == UInt8(ascii: ":") else { return nil }
        return Int(String(decoding: reply.dropFirst().dropLast(2), as: UTF8.self)).flatMap { $0 >= 0 ? $0 : nil }
    }
}
