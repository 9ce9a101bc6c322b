// The decoding of replies that are maps.

import LarderRESP

extension EntryInfo {
    /// Reads the reply to `META`.
    package init(reply: RESPValue) throws(LarderClientError) {
        let fields = try ReplyFields(reply, of: "META")
        let storedAt = try fields.integer("stored-at")
        let deadline = try fields.milliseconds("deadline")
        let (policy, codec) = (try fields.string("policy"), try fields.string("codec"))
        guard let databasePolicy = UpdatePolicy(policy) else {
            throw .unexpectedReply(to: "META", "a map with a policy that this client knows")
        }
        guard let codec = Codec(name: codec) ?? UInt8(codec).map({ Codec(rawValue: $0) }) else {
            throw .unexpectedReply(to: "META", "a map with a codec that this client knows")
        }
        let readAt = storedAt + (try fields.integer("age"))
        // An entry that is stale although its deadline has not passed is unverified.
        let isUnverified = try fields.string("state") == "stale" && deadline.map { readAt < $0 } ?? true
        self.init(
            storedAtMilliseconds: storedAt, deadlineMilliseconds: deadline,
            rule: Self.rule(try fields.string("rule"), deadline),
            graceMilliseconds: try fields.integerIfAny("grace") ?? 0, databasePolicy: databasePolicy, codec: codec,
            byteCount: Int(clamping: try fields.integer("size")),
            readAtMilliseconds: readAt, isUnverified: isUnverified)
    }

    /// Converts the name of a rule. An unknown rule, from a newer daemon, is treated as the entry's own deadline.
    private static func rule(_ name: String, _ deadline: Int64?) -> DeadlineRule {
        if name == "governed" { return .governed }
        return deadline.map { .own($0) } ?? .ownNever
    }
}

extension PurgeReport {
    /// Reads the reply to `PURGE`.
    package init(reply: RESPValue) throws(LarderClientError) {
        let fields = try ReplyFields(reply, of: "PURGE")
        self.init(
            entries: Int(clamping: try fields.integer("entries")), bytes: Int(clamping: try fields.integer("bytes")),
            milliseconds: try fields.integer("milliseconds"))
    }
}

extension DatabaseInfo {
    /// Reads an element of the reply to `DATABASES`.
    package init(reply: RESPValue) throws(LarderClientError) {
        let fields = try ReplyFields(reply, of: "DATABASES")
        let (count, stale) = (try fields.integer("entries"), try fields.integerIfAny("stale"))
        self.init(
            name: try fields.string("name"), policy: try fields.string("policy"),
            intervalMilliseconds: try fields.milliseconds("interval"),
            graceMilliseconds: try fields.integerIfAny("grace") ?? 0,
            jitterPercent: Int(clamping: try fields.integerIfAny("jitter") ?? 0), entries: count < 0 ? nil : count,
            staleEntries: stale.flatMap { $0 < 0 ? nil : $0 }, ends: try Ends(fields),
            bytes: try fields.integer("bytes"), limit: try fields.limit("limit"), state: try fields.string("state"),
            damage: fields.value("damage")?.string.flatMap { $0.isEmpty ? nil : $0 })
    }
}

extension DatabaseInfo.Ends {
    /// Reads the fields of a reply to `DATABASES`.
    /// - Returns: nil if the daemon has not counted the entries, or is too old to send these fields.
    fileprivate init?(_ fields: ReplyFields) throws(LarderClientError) {
        guard let minute = try fields.integerIfAny("ends-minute"), minute >= 0,
            let hour = try fields.integerIfAny("ends-hour"), let day = try fields.integerIfAny("ends-day"),
            let never = try fields.integerIfAny("ends-never")
        else { return nil }
        self.init(minute: minute, hour: hour, day: day, never: never)
    }
}

extension LimitInfo {
    /// Reads the reply to `LIMIT`.
    package init(reply: RESPValue) throws(LarderClientError) {
        let fields = try ReplyFields(reply, of: "LIMIT")
        self.init(
            limit: try fields.limit("limit"), bytes: try fields.integer("bytes"),
            evicted: try fields.integer("evicted"))
    }
}

extension PolicyInfo {
    /// Reads the reply to `POLICY`.
    package init(reply: RESPValue) throws(LarderClientError) {
        let fields = try ReplyFields(reply, of: "POLICY")
        self.init(
            policy: try fields.string("policy"), intervalMilliseconds: try fields.milliseconds("interval"),
            graceMilliseconds: try fields.integerIfAny("grace") ?? 0,
            jitterPercent: Int(clamping: try fields.integerIfAny("jitter") ?? 0))
    }
}

extension UpdatePolicy {
    /// Creates the policy for an interval as the server reports it: in milliseconds, or -1 for never. Nil for an
    /// invalid interval.
    init?(serverInterval milliseconds: Int64) {
        if milliseconds == -1 {
            self = .never
        } else if let policy = Self.every(milliseconds: milliseconds) {
            self = policy
        } else {
            return nil
        }
    }
}

extension RESPValue {
    /// Returns the reply to a command. Throws if it is an error of the server.
    package func checked(_ operation: String) throws(LarderClientError) -> RESPValue {
        if let text = errorMessage { throw .server(text, operation: operation) }
        return self
    }

    /// The value of a name in a map; nil if there is none.
    package func field(_ name: String) -> RESPValue? { pairs?.first { $0.key.string == name }?.value }
}

/// The fields of a reply with names and values: a map, or in RESP2 alternating names and values.
///
/// Unknown fields are ignored, so that a newer server may send more.
struct ReplyFields {
    private let operation: String
    private var values: [String: RESPValue] = [:]

    init(_ reply: RESPValue, of operation: String) throws(LarderClientError) {
        guard let pairs = reply.pairs else { throw LarderClientError.unexpectedReply(to: operation, "a map") }
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
