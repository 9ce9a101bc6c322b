/// A command of the slow log. A value type.
package struct SlowCommand: Sendable {
    /// When the command started, in seconds since 1970.
    package let seconds: Int64
    /// Its duration in microseconds.
    package let microseconds: Int64
    package let words: [[UInt8]]
    package let clientName: String

    package init(seconds: Int64, microseconds: Int64, words: [[UInt8]], clientName: String) {
        self.seconds = seconds
        self.microseconds = microseconds
        self.words = words
        self.clientName = clientName
    }

    /// Parses the reply to SLOWLOG GET; skips malformed elements.
    package static func read(_ reply: RESPValue) -> [SlowCommand] {
        (reply.elements ?? []).compactMap { element in
            guard let fields = element.elements, fields.count >= 4, let seconds = fields[1].int,
                let microseconds = fields[2].int, let words = fields[3].elements
            else { return nil }
            let name = fields.count > 5 ? fields[5].string ?? "" : ""
            return SlowCommand(
                seconds: seconds, microseconds: microseconds, words: words.compactMap(\.bytes), clientName: name)
        }
    }
}
