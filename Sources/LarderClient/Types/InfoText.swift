/// The reply to INFO, by field. Unknown fields are ignored, so that a newer daemon may send more.
package struct InfoText: Sendable {
    private let fields: [String: Substring]
    /// The names of the fields, in the order of the reply.
    private let order: [String]

    package init(_ text: String) {
        var fields: [String: Substring] = [:]
        var order: [String] = []
        // In Swift, CR LF is one character.
        for line in text.split(whereSeparator: { $0 == "\r\n" || $0 == "\n" }) where line.first != "#" {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let name = String(line[..<colon])
            if fields.updateValue(line[line.index(after: colon)...], forKey: name) == nil { order.append(name) }
        }
        self.fields = fields
        self.order = order
    }

    package func text(_ name: String) -> String? { fields[name].map(String.init) }

    /// Returns the number in a field; nil if the field is missing or not a finite number.
    package func number(_ name: String) -> Double? {
        fields[name].flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil }
    }

    /// Returns the whole number in a field; 0 if there is none. Clamps extreme values, so that sums cannot overflow.
    package func integer(_ name: String) -> Int64 {
        fields[name].flatMap { Int64($0) }.map { min(max($0, -Self.integerMax), Self.integerMax) } ?? 0
    }

    package static let integerMax: Int64 = 1 << 58

    /// The statistics of the commands, by their names.
    package var commands: [String: CommandFigures] {
        var commands: [String: CommandFigures] = [:]
        for prefix in ["cmdstat_", "latency_percentiles_usec_"] {
            for (name, parts) in textLists(prefix) {
                for part in parts { commands[name, default: CommandFigures(name: name)].fields[part.name] = part.text }
            }
        }
        return commands
    }

    /// Returns the fields whose names begin with `prefix`, each with the rest of its name and the `name=number` parts
    /// of its value.
    package func lists(_ prefix: String) -> [(name: String, parts: [String: Double])] {
        textLists(prefix).map { name, parts in
            var numbers: [String: Double] = [:]
            for (part, text) in parts {
                if let number = Double(text), number.isFinite { numbers[String(part)] = number }
            }
            return (name, numbers)
        }
    }

    /// Like ``lists(_:)``, with the numbers as text, in the order of the reply.
    package func textLists(_ prefix: String) -> [(name: String, parts: [(name: Substring, text: Substring)])] {
        order.filter { $0.hasPrefix(prefix) }.map { name in
            let parts = (fields[name] ?? "").split(separator: ",").compactMap { part in
                let pair = part.split(separator: "=", maxSplits: 1)
                return pair.count == 2 ? (name: pair[0], text: pair[1]) : nil
            }
            return (String(name.dropFirst(prefix.count)), parts)
        }
    }
}

/// The statistics of one command since the daemon's start or since CONFIG RESETSTAT. A value type.
package struct CommandFigures: Sendable {
    package let name: String
    fileprivate var fields: [Substring: Substring] = [:]

    fileprivate init(name: String) { self.name = name }

    package var calls: Int64 { integer("calls") }
    package var microseconds: Int64 { integer("usec") }
    package var failed: Int64 { integer("failed_calls") }
    package var rejected: Int64 { integer("rejected_calls") }
    // The 50th, 99th and 99.9th percentile as upper bounds, in microseconds; nil if unknown.
    package var p50: Double? { fields["p50"].flatMap { Double($0) } }
    package var p99: Double? { fields["p99"].flatMap { Double($0) } }
    package var p999: Double? { fields["p99.9"].flatMap { Double($0) } }
    package var averageMicroseconds: Double { calls > 0 ? Double(microseconds) / Double(calls) : 0 }

    private func integer(_ name: Substring) -> Int64 { fields[name].flatMap { Int64($0) } ?? 0 }
}

/// A command of the slow log. A value type.
package struct SlowCommand: Sendable {
    /// When the command started, in seconds since 1970.
    package let seconds: Int64
    package let microseconds: Int64
    package let words: [[UInt8]]
    package let clientName: String

    package init(seconds: Int64, microseconds: Int64, words: [[UInt8]], clientName: String) {
        (self.seconds, self.microseconds, self.words, self.clientName) = (seconds, microseconds, words, clientName)
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
