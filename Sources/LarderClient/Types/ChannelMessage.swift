/// A message of a subscription. A value.
public struct ChannelMessage: Hashable, Sendable {
    /// The channel that it was published to. Bytes that are not UTF-8 show as U+FFFD.
    public let channel: String
    /// The pattern that brought it here; nil where the channel itself was subscribed to.
    public let pattern: String?
    /// What was published.
    public let payload: [UInt8]
    /// Whether messages before this one may be missing: the connection was lost meanwhile, or the buffer was full.
    public internal(set) var followsGap = false

    /// The payload as text; nil when it is not UTF-8.
    public var text: String? { String(validating: payload, as: UTF8.self) }
}
