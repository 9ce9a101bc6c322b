import LarderRESP

/// A message that is not a reply, encoded once for all receivers.
///
/// Thread-safe: immutable.
final class PushMessage: Sendable {
    /// The encoding of the message for each protocol version.
    private enum Form: Sendable {
        /// The RESP3 encoding; RESP2 differs in the first byte only.
        case message([UInt8])
        /// In RESP2, a message on a channel of its own, sent only while the connection is in subscriber mode.
        case invalidation(two: [UInt8]?, three: [UInt8])
        /// RESP3 only.
        case three([UInt8])
        /// The same for every connection, in every mode.
        case line([UInt8])
    }

    private let form: Form
    /// The approximate size of one copy.
    let byteCount: Int
    /// Whether it is a line of MONITOR.
    var isLine: Bool { line != nil }
    var line: [UInt8]? { if case .line(let bytes) = form { bytes } else { nil } }
    /// Whether the message invalidates all keys.
    let isOfEverything: Bool

    private init(_ form: Form, isOfEverything: Bool = false) {
        self.form = form
        self.isOfEverything = isOfEverything
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

    /// A line of MONITOR, encoded.
    static func line(_ bytes: [UInt8]) -> PushMessage { PushMessage(.line(bytes)) }

    // MARK: Publish and subscribe

    /// `message channel payload`, or `smessage` for a shard channel.
    static func message(_ kind: String, channel: [UInt8], _ payload: [UInt8]) -> PushMessage {
        PushMessage(
            .message(
                encode { buffer in
                    buffer.push(count: 3)
                    buffer.bulk(kind)
                    buffer.bulk(channel)
                    buffer.bulk(payload)
                }))
    }

    /// `pmessage pattern channel payload`.
    static func message(pattern: [UInt8], channel: [UInt8], _ payload: [UInt8]) -> PushMessage {
        PushMessage(
            .message(
                encode { buffer in
                    buffer.push(count: 4)
                    buffer.bulk("pmessage")
                    buffer.bulk(pattern)
                    buffer.bulk(channel)
                    buffer.bulk(payload)
                }))
    }

    // MARK: Tracking

    /// Invalidates keys; nil for all.
    /// - Parameter isRedirected: whether the message is redirected to another connection.
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

    /// Reports that the connection to which invalidations are redirected was closed.
    static func redirectBroken(_ id: Int64) -> PushMessage {
        PushMessage(
            .three(
                encode { buffer in
                    buffer.push(count: 2)
                    buffer.bulk("tracking-redir-broken")
                    buffer.integer(id)
                }))
    }

    /// Encodes the message for a connection.
    /// - Parameter isSubscriber: whether the connection has subscriptions.
    func write(to replies: inout ReplyBuffer, isSubscriber: Bool) {
        switch form {
        // In RESP2, messages look like replies: after the last UNSUBSCRIBE, the client would take a message for a
        // reply.
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
