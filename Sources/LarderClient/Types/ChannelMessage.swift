/// A message of a subscription. A value type.
public struct ChannelMessage: Hashable, Sendable {
    /// The channel of the message. Bytes that are not UTF-8 appear as U+FFFD.
    public let channel: String
    /// The matching pattern; nil for a subscription to the channel itself.
    public let pattern: String?
    /// The published bytes.
    public let payload: [UInt8]
    /// Whether messages before this one may be missing, because the connection was lost or the buffer was full.
    public internal(set) var followsGap = false

    /// The payload as text; nil if it is not UTF-8.
    public var text: String? { String(validating: payload, as: UTF8.self) }
}
