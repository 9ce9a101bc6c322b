import LarderPlatform

/// The unread messages of a subscription, up to a maximum number. If there are more, the oldest are dropped, and the
/// next message reports the gap.
struct PendingMessages: MailboxContent {
    private let max: Int
    private var messages = Deque<ChannelMessage>()
    private var hasGap = false
    /// Whether messages before the first one in `messages` were dropped.
    private var hasGapInFront = false

    init(max: Int) { self.max = max }

    mutating func add(_ message: ChannelMessage) {
        var message = message
        if hasGap {
            message.followsGap = true
            hasGap = false
        }
        if messages.count >= max {
            _ = messages.popFirst()
            hasGapInFront = true
        }
        messages.append(message)
    }

    /// Notes that messages before the next one may be missing.
    mutating func noteGap() { hasGap = true }

    mutating func take() -> Result<ChannelMessage?, LarderClientError>? {
        guard var message = messages.popFirst() else { return nil }
        if hasGapInFront {
            message.followsGap = true
            hasGapInFront = false
        }
        return .success(message)
    }

    /// The messages that have arrived can still be read.
    func end() {}
}

typealias MessageBuffer = Mailbox<PendingMessages>

extension MessageBuffer: TopicListener {
    func take(_ message: TopicMessage) {
        let message = ChannelMessage(
            channel: String(decoding: message.channel, as: UTF8.self),
            pattern: message.pattern.map { String(decoding: $0, as: UTF8.self) }, payload: message.payload)
        change { $0.add(message) }
    }

    func connectionWasLost() { change { $0.noteGap() } }

    func isRestored() {}
}
