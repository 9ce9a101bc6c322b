import LarderClient
import LarderCommandCatalog

extension SlowCommand: JSONValue {
    /// Whether the command is not an administrative one.
    var isOfProgram: Bool {
        guard let row = CommandMetadata.row(of: words) else { return true }
        return row.group != .server && !row.flags.contains(.admin)
    }

    /// The line for a user: the time, the duration, the command, and its first argument, which is usually a key.
    var line: [UInt8] {
        var line = Array(
            "\(TimeText.instant(seconds: seconds))  \(NumberText.microseconds(Double(microseconds)))".utf8)
        for word in words.prefix(2) { line += [0x20] + Array(printableKey(word).utf8) }
        if words.count > 2 { line += Array(" … (\(words.count) words)".utf8) }
        return line
    }

    var json: JSONText {
        ["time": seconds, "microseconds": microseconds, "words": words, "client": clientName]
    }
}

/// An event in the reply to LATENCY LATEST. `latest` and `longest` are in milliseconds.
struct LatencyEvent: JSONValue {
    let name: String
    let seconds: Int64
    let latest: Int64
    let longest: Int64

    static func read(_ reply: RESPValue) -> [LatencyEvent] {
        (reply.elements ?? []).compactMap { element in
            guard let fields = element.elements, fields.count >= 4, let name = fields[0].string,
                let seconds = fields[1].int, let latest = fields[2].int, let longest = fields[3].int
            else { return nil }
            return LatencyEvent(name: name, seconds: seconds, latest: latest, longest: longest)
        }
    }

    var json: JSONText {
        ["event": name, "time": seconds, "latestMilliseconds": latest, "longestMilliseconds": longest]
    }
}
