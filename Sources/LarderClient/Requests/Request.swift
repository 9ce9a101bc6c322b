// The requests of all calls and the decoding of their replies, shared by the blocking and the asynchronous client.

import LarderRESP
import LarderWire

/// A command and the decoding of its reply. A value type.
struct Request<Result: Sendable>: Sendable {
    /// The command's name and its arguments.
    let words: [[UInt8]]
    /// The key, if the request has a single one, for error messages.
    let key: [UInt8]?
    /// Whether the request only reads, so that it may be sent again if the connection is lost before the reply.
    let isRead: Bool
    private let interpretation: @Sendable (RESPValue) throws(LarderClientError) -> Result?
    /// A description of the expected reply, for messages: "a number".
    private let expected: String

    /// - Parameter interpretation: decodes the reply; returns nil for a reply of an unexpected form.
    init(
        _ words: [[UInt8]], key: [UInt8]? = nil, isRead: Bool = false, expects expected: String,
        _ interpretation: @escaping @Sendable (RESPValue) throws(LarderClientError) -> Result?
    ) {
        self.words = words
        self.key = key
        self.isRead = isRead
        self.expected = expected
        self.interpretation = interpretation
    }

    /// The command's name.
    var name: String { words.first.map { printableKey($0) } ?? "command" }

    /// Decodes the reply; throws if the reply is an error.
    func result(of reply: RESPValue) throws(LarderClientError) -> Result {
        if let text = reply.errorMessage {
            throw .server(text, operation: name, key: key.map { printableKey($0) })
        }
        guard let result = try interpretation(reply) else {
            throw .unexpectedReply(to: name, expected, key: key.map { printableKey($0) })
        }
        return result
    }

    /// Decodes the replies to several requests. Returns a result or an error for each of them.
    /// - Parameter database: the database's name, for errors.
    static func results(of requests: [Request], _ replies: [RESPValue], _ database: String)
        -> [Swift.Result<Result, LarderClientError>]
    {
        zip(requests, replies).map { request, reply in
            do throws(LarderClientError) {
                return .success(try request.result(of: reply))
            } catch {
                return .failure(error.about(database))
            }
        }
    }
}

/// Converts words to bytes.
package func wordList(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }

extension Request where Result == Void {
    static func expectingOK(_ words: [[UInt8]], key: [UInt8]? = nil) -> Request {
        Request(words, key: key, expects: "OK") { $0 == .simpleString("OK") ? () : nil }
    }

    /// Stores entries with the same policy, tags and codec, as one command of larderd.
    static func setAll(
        _ entries: [(key: [UInt8], value: [UInt8])], policy: EntryPolicy.Checked, tags: CheckedTags, codec: Codec
    ) -> Request {
        var list = wordList("MSETEX", String(entries.count)) + entries.flatMap { [$0.key, $0.value] }
        list += policy.words(for: ServerKind())
        list += wordList("CODEC", codec.description)
        list += tags.words
        return Request(list, expects: "1") { $0 == .integer(1) ? () : nil }
    }

    static func setAll(_ entries: [(key: [UInt8], value: [UInt8])]) -> Request {
        expectingOK(wordList("MSET") + entries.flatMap { [$0.key, $0.value] })
    }

    /// Sets the database's policy. Nil keeps the current grace or jitter.
    /// - Throws: `invalidArgument` for an invalid policy, grace or jitter.
    static func setPolicy(
        _ policy: UpdatePolicy, grace: Duration?, jitter: Int?, _ database: String
    ) throws(LarderClientError) -> Request {
        var words: [[UInt8]] = []
        do throws(EntryPolicy.Impossible) {
            words = wordList("POLICY", try policy.checked().description)
            if let grace { words += wordList("GRACE", EntryPolicy.graceText(try EntryPolicy.checked(grace: grace))) }
            if let jitter { words += wordList("JITTER", "\(try EntryPolicy.checked(jitter: jitter))") }
        } catch {
            throw LarderClientError(.invalidArgument, error.message, operation: "POLICY", database: database)
        }
        return expectingOK(words)
    }

    /// Sets the database's disk limit.
    /// - Parameter limit: in the daemon's syntax: `64M`, `none`.
    static func setLimit(_ limit: String) -> Request { expectingOK(wordList("LIMIT", limit)) }

    /// Sets the database's origin.
    /// - Parameter words: the URL followed by options, or `none`, in the daemon's syntax.
    static func setOrigin(_ words: [[UInt8]]) -> Request { expectingOK(wordList("ORIGIN") + words) }

    static var ping: Request {
        Request(wordList("PING"), isRead: true, expects: "PONG") { $0 == .simpleString("PONG") ? () : nil }
    }
}

extension Request where Result == [UInt8]? {
    static func get(_ key: [UInt8]) -> Request {
        Request([Array("GET".utf8), key], key: key, isRead: true, expects: "a value") { reply in
            switch reply {
            case .null: .some(nil)
            case .bulk(let bytes): bytes
            default: nil
            }
        }
    }
}

extension Request where Result == [[UInt8]?] {
    static func getAll(_ keys: [[UInt8]]) -> Request {
        Request(wordList("MGET") + keys, isRead: true, expects: "one value for each key") {
            (reply) throws(LarderClientError) in
            guard let elements = reply.elements, elements.count == keys.count else { return nil }
            var values: [[UInt8]?] = []
            values.reserveCapacity(keys.count)
            for (key, element) in zip(keys, elements) {
                switch element {
                case .null: values.append(nil)
                case .bulk(let bytes): values.append(bytes)
                default: throw .unexpectedReply(to: "MGET", "a value", key: printableKey(key))
                }
            }
            return values
        }
    }
}

extension Request where Result == Int64 {
    static func integer(_ words: [[UInt8]], key: [UInt8]? = nil, isRead: Bool = false) -> Request {
        Request(words, key: key, isRead: isRead, expects: "a number") { reply in
            if case .integer(let number) = reply { number } else { nil }
        }
    }

    /// Removes keys, and returns the number of those that existed.
    static func remove(_ keys: [[UInt8]]) -> Request {
        integer(wordList("DEL") + keys, key: keys.count == 1 ? keys.first : nil)
    }

    static var count: Request { integer(wordList("DBSIZE"), isRead: true) }

    static func publish(_ message: [UInt8], to channel: [UInt8], isSharded: Bool = false) -> Request {
        integer([Array((isSharded ? "SPUBLISH" : "PUBLISH").utf8), channel, message])
    }
}

extension Request where Result == Bool {
    static func contains(_ key: [UInt8]) -> Request {
        Request([Array("EXISTS".utf8), key], key: key, isRead: true, expects: "a number") { reply in
            if case .integer(let number) = reply { number > 0 } else { nil }
        }
    }
}

extension Request where Result == TimeToLive? {
    static func timeToLive(_ key: [UInt8]) -> Request {
        Request([Array("PTTL".utf8), key], key: key, isRead: true, expects: "a time in milliseconds") { reply in
            guard case .integer(let number) = reply else { return nil }
            switch number {
            case -2: return .some(nil)
            case -1: return .never
            case 0...: return .milliseconds(number)
            default: return nil
            }
        }
    }
}

extension Request where Result == EntryInfo? {
    static func info(_ key: [UInt8]) -> Request {
        Request([Array("META".utf8), key], key: key, isRead: true, expects: "a map") {
            (reply) throws(LarderClientError) in
            reply.isNull ? .some(nil) : try EntryInfo(reply: reply)
        }
    }
}

/// One round trip of an enumeration of keys.
struct ScanStep: Sendable {
    let keys: [[UInt8]]
    /// The request for the next keys; nil at the end.
    let next: Request<ScanStep>?

    /// Returns a key as text; nil if it is not UTF-8.
    static func text(_ key: [UInt8]) -> String? { String(validating: key, as: UTF8.self) }

    /// Returns the keys that are text and that no earlier step had.
    /// - Parameter seen: the keys of the earlier steps, to which this adds its keys.
    func texts(notIn seen: inout Set<[UInt8]>) -> [String] {
        keys.compactMap { seen.insert($0).inserted ? Self.text($0) : nil }
    }

    /// Returns all keys that are text, each once.
    static func texts(
        matching pattern: String?, _ perform: (Request<ScanStep>) async throws(LarderClientError) -> ScanStep
    ) async throws(LarderClientError) -> [String] {
        var next: Request<ScanStep>? = .scan(matching: pattern?.keyBytes)
        var seen: Set<[UInt8]> = []
        var keys: [String] = []
        while let request = next {
            let step = try await perform(request)
            keys += step.texts(notIn: &seen)
            next = step.next
        }
        return keys
    }
}

extension Request where Result == ScanStep {
    /// Requests the first keys of an enumeration.
    /// - Parameters:
    ///   - cursor: the daemon's cursor, for the next keys.
    ///   - pattern: a glob pattern; nil for all keys.
    static func scan(from cursor: [UInt8] = Array("0".utf8), matching pattern: [UInt8]?) -> Request {
        var list = [Array("SCAN".utf8), cursor]
        if let pattern { list += [Array("MATCH".utf8), pattern] }
        list += wordList("COUNT", "500")
        return Request(list, isRead: true, expects: "a cursor and keys") { reply in
            guard let parts = reply.elements, parts.count == 2, let next = parts[0].bytes,
                let found = parts[1].elements
            else { return nil }
            var keys: [[UInt8]] = []
            keys.reserveCapacity(found.count)
            for key in found {
                guard let bytes = key.bytes else { return nil }
                keys.append(bytes)
            }
            return ScanStep(
                keys: keys, next: next == Array("0".utf8) ? nil : .scan(from: next, matching: pattern))
        }
    }
}

extension Request where Result == PolicyInfo {
    static var policy: Request {
        Request(wordList("POLICY"), isRead: true, expects: "a policy") { (reply) throws(LarderClientError) in
            try PolicyInfo(reply: reply)
        }
    }
}

extension Request where Result == [(String, String)] {
    /// Returns the fields of the database's origin: names and values as the daemon reports them.
    static var origin: Request {
        Request(wordList("ORIGIN"), isRead: true, expects: "a map") { (reply) throws(LarderClientError) in
            guard let pairs = reply.pairs else { return nil }
            return pairs.map { pair in
                (pair.key.string ?? "", pair.value.string ?? pair.value.int.map { "\($0)" } ?? "")
            }
        }
    }
}

extension Request where Result == LimitInfo {
    static var limit: Request {
        Request(wordList("LIMIT"), isRead: true, expects: "a limit") { (reply) throws(LarderClientError) in
            try LimitInfo(reply: reply)
        }
    }
}

extension Request where Result == PurgeReport {
    /// Removes entries of the database.
    /// - Parameter arguments: nothing, `EXPIRED`, or `PREFIX` and a prefix.
    static func purge(_ arguments: [[UInt8]] = []) -> Request {
        Request(wordList("PURGE") + arguments, expects: "a map") { (reply) throws(LarderClientError) in
            try PurgeReport(reply: reply)
        }
    }
}

extension Request where Result == [DatabaseInfo] {
    static var databases: Request {
        Request(wordList("DATABASES"), isRead: true, expects: "an array") { (reply) throws(LarderClientError) in
            guard let elements = reply.elements else { return nil }
            var databases: [DatabaseInfo] = []
            for element in elements { databases.append(try DatabaseInfo(reply: element)) }
            return databases
        }
    }
}

extension Request where Result == String {
    /// Requests the daemon's `INFO`.
    /// - Parameter section: nil for the default ones.
    static func serverInfo(_ section: String?) -> Request {
        Request(wordList("INFO") + (section.map { [Array($0.utf8)] } ?? []), isRead: true, expects: "text") { reply in
            reply.bytes.map { String(decoding: $0, as: UTF8.self) }
        }
    }
}

typealias ServerKind = LarderWire.ServerKind
