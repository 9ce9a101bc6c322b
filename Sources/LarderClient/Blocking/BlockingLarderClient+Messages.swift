// Messages as they come, for command-line tools.

extension BlockingLarderClient {
    /// A message of a channel.
    package struct Message {
        package let channel: [UInt8]
        /// The pattern that has matched; nil for a subscription to the channel itself.
        package let pattern: [UInt8]?
        package let payload: [UInt8]
    }

    /// Shows the messages of channels as they come, on a connection of its own, until that ends.
    /// - Throws: what `visit` throws, or why the connection has ended.
    package func messages(
        of channels: [[UInt8]], arePatterns: Bool, _ visit: (Message) throws -> Void
    ) throws -> Never {
        try messages([[Array((arePatterns ? "PSUBSCRIBE" : "SUBSCRIBE").utf8)] + channels], visit)
    }

    /// A change of an entry, or of all.
    package struct Change {
        /// Nil for a change of all entries.
        package let key: [UInt8]?
        /// In the daemon's word: `stored`, `removed`, `expired`, `evicted`, `purged`, `fellbehind`, or a newer one.
        package let kind: [UInt8]
        /// The tag whose entries were purged.
        package let tag: [UInt8]?
    }

    /// The entries whose changes are shown; those of all entries are always.
    package enum WatchedEntries {
        case key([UInt8])
        case prefix([UInt8])
    }

    /// Shows changes of this client's database as they come, on a connection of its own, until that ends.
    /// - Throws: what `visit` throws, or why the connection has ended.
    package func changes(_ entries: WatchedEntries, _ visit: (Change) throws -> Void) throws -> Never {
        let channels = ChangeChannels(name)
        let subscribe = Array("SUBSCRIBE".utf8)
        let requests: [[[UInt8]]] =
            switch entries {
            case .key(let key): [[subscribe, channels.all, channels.of(key)]]
            case .prefix(let prefix):
                [[subscribe, channels.all], [Array("PSUBSCRIBE".utf8), channels.pattern(prefix: prefix)]]
            }
        let purgedTag = Array("purged ".utf8)
        try messages(requests) { message in
            let isTag = message.payload.starts(with: purgedTag)
            try visit(
                Change(
                    key: channels.key(in: message.channel),
                    kind: isTag ? Array(purgedTag.dropLast()) : message.payload,
                    tag: isTag ? Array(message.payload.dropFirst(purgedTag.count)) : nil))
        }
    }

    /// Shows whatever comes on a connection of its own after a command that asks for it, its answer included.
    /// - Throws: what `visit` throws, or why the connection has ended.
    package func stream(_ words: [[UInt8]], _ visit: (RESPValue) throws -> Void) throws -> Never {
        try session.stream([words], operation: words.first.map { printableKey($0) } ?? "command", visit)
    }

    /// The messages that have come between replies since the last call. Those before the first one are dropped.
    package func takePushes() -> [RESPValue] { session.takePushes() }

    /// Ends the connection that another thread waits for in a call, which then throws `closed`; so does every call until
    /// ``forgetInterruption()`` that has to wait.
    package func interrupt() { session.interruption.interrupt() }

    /// Calls wait again.
    package func forgetInterruption() { session.interruption.forget() }

    private func messages(_ requests: [[[UInt8]]], _ visit: (Message) throws -> Void) throws -> Never {
        let operation = requests.first?.first.map { printableKey($0) } ?? "SUBSCRIBE"
        try session.stream(requests, operation: operation) { reply in
            if let text = reply.errorMessage { throw LarderClientError.server(text, operation: operation) }
            // A push message, or the array that stands for one in RESP2. Others say that a subscription has begun.
            guard let parts = reply.elements, let kind = parts.first?.string else { return }
            let bytes = parts.dropFirst().map { $0.bytes ?? [] }
            switch (kind, bytes.count) {
            case ("message", 2): try visit(Message(channel: bytes[0], pattern: nil, payload: bytes[1]))
            case ("pmessage", 3): try visit(Message(channel: bytes[1], pattern: bytes[0], payload: bytes[2]))
            default: break
            }
        }
    }
}
