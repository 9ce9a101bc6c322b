import LarderPlatform
import LarderTestSupport
import Testing

extension SocketClient {
    /// Repeats a command until its reply is as expected, for at most a minute. The specified staleness bound is
    /// verified by ``FleetTests``.
    /// - Returns: the last reply.
    @discardableResult
    func eventually(
        _ line: String, sourceLocation: SourceLocation = #_sourceLocation, _ isRight: (String) throws -> Bool
    ) throws -> String {
        let end = MonotonicClock.milliseconds() + 60_000
        while true {
            let reply = try call(line)
            if try isRight(reply) { return reply }
            guard MonotonicClock.milliseconds() < end else {
                Issue.record("\(line) gives \(reply)", sourceLocation: sourceLocation)
                return reply
            }
        }
    }

    /// Repeats a command until its reply equals `expected`.
    func eventually(
        _ line: String, _ expected: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try eventually(line, sourceLocation: sourceLocation) { $0 == expected }
    }

    /// A number in the reply of ORIGIN for the selected database.
    func origin(_ field: String) throws -> Int { try Self.field(field, try call("ORIGIN")) }

    /// Repeats ORIGIN until one of its fields has an expected value.
    func eventually(
        origin field: String, sourceLocation: SourceLocation = #_sourceLocation, _ isRight: (Int) -> Bool
    ) throws {
        try eventually("ORIGIN", sourceLocation: sourceLocation) { isRight(try Self.field(field, $0)) }
    }

    private static func field(_ name: String, _ reply: String) throws -> Int {
        guard let start = reply.firstRange(of: "\r\n\(name)\r\n:")?.upperBound,
            let number = Int(reply[start...].prefix { $0 == "-" || $0.isNumber })
        else { throw Failure(description: "ORIGIN has no number \(name): \(reply)") }
        return number
    }
}

/// Encodes a value as a reply.
func bulkReply(_ text: String) -> String { "$\(text.utf8.count)\r\n\(text)\r\n" }
