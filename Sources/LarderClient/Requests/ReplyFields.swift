import LarderRESP

/// The fields of a reply with names and values: a map, or in RESP2 alternating names and values.
///
/// Unknown fields are ignored, so that a newer server may send more.
struct ReplyFields {
    private let operation: String
    private var values: [String: RESPValue] = [:]

    init(_ reply: RESPValue, of operation: String) throws(LarderClientError) {
        guard let pairs = reply.pairs else {
            throw LarderClientError.unexpectedReply(to: operation, "a map")
        }
        self.operation = operation
        for pair in pairs {
            guard let name = pair.key.string else { continue }
            values[name] = pair.value
        }
    }

    func string(_ name: String) throws(LarderClientError) -> String {
        guard let text = values[name]?.string else { throw missing(name, "text") }
        return text
    }

    func integer(_ name: String) throws(LarderClientError) -> Int64 {
        guard let number = values[name]?.int else { throw missing(name, "a whole number") }
        return number
    }

    /// Returns the integer in a field; nil if the field is missing, because the daemon is older.
    func integerIfAny(_ name: String) throws(LarderClientError) -> Int64? {
        values[name] == nil ? nil : try integer(name)
    }

    /// Returns a limit in bytes. Nil for no limit: the field is 0, or it is missing because the daemon is older.
    func limit(_ name: String) throws(LarderClientError) -> Int64? {
        try integerIfAny(name).flatMap { $0 > 0 ? $0 : nil }
    }

    /// Returns a time in milliseconds; nil for -1, which stands for no time.
    func milliseconds(_ name: String) throws(LarderClientError) -> Int64? {
        let number = try integer(name)
        return number == -1 ? nil : number
    }

    /// Returns the value of a field; nil if there is no such field.
    func value(_ name: String) -> RESPValue? { values[name] }

    private func missing(_ name: String, _ kind: String) -> LarderClientError {
        LarderClientError.unexpectedReply(to: operation, "a map in which '\(name)' is \(kind)")
    }
}
