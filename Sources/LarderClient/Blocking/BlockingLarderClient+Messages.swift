// Streams of messages, for command-line tools.

extension BlockingLarderClient {
    /// A message of a channel.
    package struct Message {
        package let channel: [UInt8]
        /// The matching pattern; nil for a subscription to the channel itself.
        package let pattern: [UInt8]?
        package let payload: [UInt8]
    }

    /// Passes the messages of channels to `visit` as they arrive, on a separate connection, until the connection ends.
    /// - Throws: errors of `visit`, or the reason why the connection ended.
    package func messages(
        of channels: [[UInt8]], arePatterns: Bool, _ visit: (Message) throws -> Void
    ) throws -> Never {
        try messages([[Array((arePatterns ? "PSUBSCRIBE" : "SUBSCRIBE").utf8)] + channels], visit)
    }

    /// A change of one entry or of all entries.
    package struct Change {
        /// Nil for a change that affects all entries.
        package let key: [UInt8]?
        /// The kind of the change, in the daemon's words: `stored`, `removed`, `expired`, `evicted`, `purged`,
        /// `fellbehind`, or a newer one.
        package let kind: [UInt8]
        /// The tag whose entries were purged.
        package let tag: [UInt8]?
    }

    /// The entries to watch. Changes that affect all entries, such as purges, are always included.
    package enum WatchedEntries {
        case key([UInt8])
        case prefix([UInt8])
    }

    /// Passes changes of this client's database to `visit` as they arrive, on a separate connection, until the
    /// connection ends.
    /// - Throws: errors of `visit`, or the reason why the connection ended.
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

    /// Sends a command on a connection of its own, and passes its reply and everything that follows to `visit`.
    /// - Throws: errors of `visit`, or the reason why the connection ended.
    package func stream(_ words: [[UInt8]], _ visit: (RESPValue) throws -> Void) throws -> Never {
        try session.stream([words], operation: words.first.map { printableKey($0) } ?? "command", visit)
    }

    /// Returns the messages pushed between replies since the last call. Messages pushed before the first call are
    /// dropped.
    package func takePushes() -> [RESPValue] { session.takePushes() }

    /// Shuts down the connection on which another thread waits in a call. That call throws `closed`, and so does every
    /// later call that has to wait, until ``forgetInterruption()``.
    package func interrupt() { session.interruption.interrupt() }

    /// Ends the effect of ``interrupt()``, so that later calls can wait again.
    package func forgetInterruption() { session.interruption.forget() }

    private func messages(_ requests: [[[UInt8]]], _ visit: (Message) throws -> Void) throws -> Never {
        let operation = requests.first?.first.map { printableKey($0) } ?? "SUBSCRIBE"
        try session.stream(requests, operation: operation) { reply in
            if let text = reply.errorMessage { throw LarderClientError.server(text, operation: operation) }
            // A push message, or its array form in RESP2. The kinds that are not handled here confirm a subscription.
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
