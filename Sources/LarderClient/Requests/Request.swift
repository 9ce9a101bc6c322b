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
    /// The keys whose entries the request changes. A near cache drops them.
    let changed: [[UInt8]]
    /// Whether the request may change any entry.
    let changesAll: Bool
    private let interpretation: @Sendable (RESPValue) throws(LarderClientError) -> Result?
    /// A description of the expected reply, for messages: "a number".
    private let expected: String

    /// - Parameters:
    ///   - changed: nil for the key, unless the request only reads.
    ///   - interpretation: decodes the reply; returns nil for a reply of an unexpected form.
    init(
        _ words: [[UInt8]], key: [UInt8]? = nil, isRead: Bool = false, changing changed: [[UInt8]]? = nil,
        changesAll: Bool = false, expects expected: String,
        _ interpretation: @escaping @Sendable (RESPValue) throws(LarderClientError) -> Result?
    ) {
        self.words = words
        self.key = key
        self.isRead = isRead
        self.changed = changed ?? (isRead ? [] : key.map { [$0] } ?? [])
        self.changesAll = changesAll
        self.expected = expected
        self.interpretation = interpretation
    }

    var name: String { words.first.map { printableKey($0) } ?? "command" }

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

extension Request {
    /// Creates a request whose reply `read` decodes or refuses.
    private init(
        _ words: [[UInt8]], isRead: Bool = true, changesAll: Bool = false,
        reading read: @escaping @Sendable (RESPValue) throws(LarderClientError) -> Result
    ) {
        self.init(words, isRead: isRead, changesAll: changesAll, expects: "a map") {
            (reply) throws(LarderClientError) in try read(reply)
        }
    }
}

// MARK: The database

extension Request where Result == Void {
    static func expectingOK(_ words: [[UInt8]], key: [UInt8]? = nil, changesAll: Bool = false) -> Request {
        Request(words, key: key, changesAll: changesAll, expects: "OK") { $0 == .simpleString("OK") ? () : nil }
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
        return expectingOK(words, changesAll: true)
    }

    /// Removes the entries with some tags.
    /// - Parameter words: the result of ``CheckedTags/purged(_:soft:_:)``, at least one word.
    static func purge(tags words: [[UInt8]]) -> Request {
        expectingOK(wordList("PURGE", "TAG") + words, changesAll: true)
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

extension Request where Result == UpdatePolicy {
    /// Requests the database's policy, without its grace and its jitter.
    static var updatePolicy: Request {
        Request(wordList("POLICY"), isRead: true, expects: "a policy") { (reply) throws(LarderClientError) in
            UpdatePolicy(serverInterval: try PolicyInfo(reply: reply).intervalMilliseconds ?? -1)
        }
    }
}

extension Request where Result == PolicyInfo {
    static var policy: Request {
        Request(wordList("POLICY")) { (reply) throws(LarderClientError) in try PolicyInfo(reply: reply) }
    }
}

extension Request where Result == LimitInfo {
    static var limit: Request {
        Request(wordList("LIMIT")) { (reply) throws(LarderClientError) in try LimitInfo(reply: reply) }
    }
}

extension Request where Result == PurgeReport {
    /// Removes entries of the database.
    /// - Parameter arguments: nothing, or `PREFIX` and a prefix.
    static func purge(_ arguments: [[UInt8]] = []) -> Request {
        Request(wordList("PURGE") + arguments, isRead: false, changesAll: true) {
            (reply) throws(LarderClientError) in try PurgeReport(reply: reply)
        }
    }

    /// Removes expired entries. No call returns them, so near caches keep what they have.
    static var purgeExpired: Request {
        Request(wordList("PURGE", "EXPIRED"), isRead: false) {
            (reply) throws(LarderClientError) in try PurgeReport(reply: reply)
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

extension Request where Result == Int64 {
    static func integer(
        _ words: [[UInt8]], key: [UInt8]? = nil, isRead: Bool = false, changing changed: [[UInt8]]? = nil
    ) -> Request {
        Request(words, key: key, isRead: isRead, changing: changed, expects: "a number") { reply in
            if case .integer(let number) = reply { number } else { nil }
        }
    }

    static var count: Request { integer(wordList("DBSIZE"), isRead: true) }

    static func publish(_ message: [UInt8], to channel: [UInt8], isSharded: Bool = false) -> Request {
        integer([Array((isSharded ? "SPUBLISH" : "PUBLISH").utf8), channel, message])
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
