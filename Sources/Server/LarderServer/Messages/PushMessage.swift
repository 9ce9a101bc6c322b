import LarderQueries
import LarderQuerying
import LarderRESP

/// A message to clients that is not a reply. It is encoded once, and then sent to any number of clients.
///
/// Thread-safe: immutable.
final class PushMessage: Sendable {
    /// The encoding of the message for each protocol version.
    private enum Form: Sendable {
        /// The message in RESP3. In RESP2, only the first byte differs.
        case message([UInt8])
        /// An invalidation. `two` is its RESP2 form, a message on the channel `__redis__:invalidate`. `two` is nil if
        /// the invalidation is not redirected, because RESP2 clients then do not receive it.
        case invalidation(two: [UInt8]?, three: [UInt8])
        /// A message that only RESP3 clients get.
        case three([UInt8])
        /// A line of MONITOR. It is the same for all clients and protocol versions.
        case line([UInt8])
    }

    private let form: Form
    /// The approximate size of the message in bytes.
    let byteCount: Int
    /// Whether the message is a line of MONITOR.
    var isLine: Bool { line != nil }
    var line: [UInt8]? { if case .line(let bytes) = form { bytes } else { nil } }
    /// Whether the message tells the client to discard all keys.
    let isOfEverything: Bool
    /// The number of the live query whose message this is; nil for other messages.
    let query: Int?
    /// Whether it is the last message of the live query.
    let endsQuery: Bool

    private init(_ form: Form, isOfEverything: Bool = false, query: Int? = nil, endsQuery: Bool = false) {
        self.form = form
        self.isOfEverything = isOfEverything
        (self.query, self.endsQuery) = (query, endsQuery)
        byteCount =
            switch form {
            case .message(let bytes), .three(let bytes), .line(let bytes), .invalidation(_, let bytes): bytes.count
            }
    }

    private static func encode(_ version: RESPVersion = .three, _ write: (inout ReplyBuffer) -> Void) -> [UInt8] {
        var buffer = ReplyBuffer(version: version)
        write(&buffer)
        return buffer.take()
    }

    /// Creates a line of MONITOR from its encoded bytes.
    static func line(_ bytes: [UInt8]) -> PushMessage { PushMessage(.line(bytes)) }

    // MARK: Publish and subscribe

    /// Creates the message `message channel payload`; for a sharded channel, `kind` is `smessage`.
    static func message(_ kind: String, channel: [UInt8], _ payload: [UInt8]) -> PushMessage {
        message([Array(kind.utf8), channel, payload])
    }

    /// Creates the message `pmessage pattern channel payload`.
    static func message(pattern: [UInt8], channel: [UInt8], _ payload: [UInt8]) -> PushMessage {
        message([Array("pmessage".utf8), pattern, channel, payload])
    }

    private static func message(_ words: [[UInt8]]) -> PushMessage {
        let bytes = encode { buffer in
            buffer.push(count: words.count)
            for word in words { buffer.bulk(word) }
        }
        return PushMessage(.message(bytes))
    }

    // MARK: Tracking

    /// Creates a message that invalidates keys, or all keys if `keys` is nil.
    /// - Parameter isRedirected: whether the receiver is another connection than the one that tracks the keys.
    static func invalidation(_ keys: [[UInt8]]?, isRedirected: Bool) -> PushMessage {
        func write(_ buffer: inout ReplyBuffer) {
            guard let keys else { return buffer.null() }
            buffer.array(count: keys.count)
            for key in keys { buffer.bulk(key) }
        }
        let three = encode { buffer in
            buffer.push(count: 2)
            buffer.bulk("invalidate")
            write(&buffer)
        }
        guard isRedirected else {
            return PushMessage(.invalidation(two: nil, three: three), isOfEverything: keys == nil)
        }
        let two = encode(.two) { buffer in
            buffer.push(count: 3)
            buffer.bulk("message")
            buffer.bulk("__redis__:invalidate")
            write(&buffer)
        }
        return PushMessage(.invalidation(two: two, three: three), isOfEverything: keys == nil)
    }

    /// Creates the message about the end of the connection to which invalidations were redirected.
    static func redirectBroken(_ id: Int64) -> PushMessage {
        PushMessage(
            .three(
                encode { buffer in
                    buffer.push(count: 2)
                    buffer.bulk("tracking-redir-broken")
                    buffer.integer(id)
                }))
    }

    // MARK: Live queries

    /// Creates the message of an event of a live query: `live id set key text`, `live id out key reason`,
    /// `live id reset rows`, or `live id end text`. With KEYS there are no texts.
    /// - Parameters:
    ///   - positions: whether `set` has the index of the row.
    ///   - isLast: otherwise `set` and `out` end with `more`: another message of the same change follows.
    static func live(_ id: Int, _ event: LiveEvent, positions: Bool, isLast: Bool = true) -> PushMessage {
        var endsQuery = false
        let bytes = encode { buffer in
            func begin(_ word: String, _ count: Int) {
                buffer.push(count: 3 + count)
                buffer.bulk("live")
                buffer.integer(id)
                buffer.bulk(word)
            }
            switch event {
            case .out(let key, let reason):
                begin("out", isLast ? 2 : 3)
                buffer.bulk(key)
                buffer.bulk(reason.rawValue)
                if !isLast { buffer.bulk("more") }
            case .set(let row, let index):
                begin("set", 1 + (row.text == nil ? 0 : 1) + (positions ? 1 : 0) + (isLast ? 0 : 1))
                buffer.bulk(row.key)
                if let text = row.text { buffer.bulk(text) }
                if positions { buffer.integer(index) }
                if !isLast { buffer.bulk("more") }
            case .reset(let rows):
                begin("reset", 1)
                buffer.rows(rows)
            case .ended(let failure):
                endsQuery = true
                begin("end", 1)
                switch failure as? QueryFailure {
                case .refused(let text): buffer.bulk(text)
                case .engine(let error): buffer.bulk(error.message)
                case .cancelled, .tooLong, nil: buffer.bulk("the query was cancelled")
                }
            }
        }
        return PushMessage(.three(bytes), query: id, endsQuery: endsQuery)
    }

    /// Writes the message to a connection's output.
    /// - Parameter isSubscriber: whether the connection has subscriptions. If not, RESP2 clients get no messages.
    func write(to replies: inout ReplyBuffer, isSubscriber: Bool) {
        switch form {
        // A RESP2 client that has just unsubscribed would mistake a message for a reply, because both look the same.
        case .message(let bytes): if replies.version == .three || isSubscriber { replies.push(encoded: bytes) }
        case .line(let bytes): replies.raw(bytes)
        case .three(let bytes): if replies.version == .three { replies.raw(bytes) }
        case .invalidation(let two, let three):
            if replies.version == .three {
                replies.raw(three)
            } else if isSubscriber, let two {
                replies.raw(two)
            }
        }
    }
}

extension ReplyBuffer {
    /// Writes the rows of a live query: `[[key, text], …]`, or `[key, …]` without texts.
    mutating func rows(_ rows: [LiveRow]) {
        array(count: rows.count)
        for row in rows {
            if row.text != nil { array(count: 2) }
            bulk(row.key)
            if let text = row.text { bulk(text) }
        }
    }
}
