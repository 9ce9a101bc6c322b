// Calls for command-line tools: settings of databases, bytes that are not UTF-8, streams of messages.

extension BlockingLarderClient {
    package func policyInfo() throws(LarderClientError) -> PolicyInfo { try perform(.policy) }
    package func limitInfo() throws(LarderClientError) -> LimitInfo { try perform(.limit) }
    /// Sets the disk limit, in the daemon's syntax: a number of bytes, such as `64M`, or `none`.
    package func setLimit(_ limit: String) throws(LarderClientError) { try perform(.setLimit(limit)) }
    /// Returns the fields of the origin, as names and values. The first one is its URL, which is empty without origin.
    package func originInfo() throws(LarderClientError) -> [(String, String)] { try perform(.origin) }
    /// Sets the origin, in the daemon's syntax: a URL followed by options, or `none`.
    package func setOrigin(_ words: [[UInt8]]) throws(LarderClientError) { try perform(.setOrigin(words)) }

    /// Like ``tags(forKey:)``, including tags that are not UTF-8.
    package func tagBytes(forKey key: some CacheKey) throws(LarderClientError) -> [[UInt8]]? {
        try perform(Request<[[UInt8]]?>.tagBytes(key.keyBytes))
    }

    /// Like ``forEachKey(matching:_:)``, with a pattern of any bytes. For larderctl, because words from a shell need
    /// not be UTF-8.
    package func forEachKey(matching pattern: [UInt8]?, _ body: ([UInt8]) throws -> Bool) throws {
        var next: Request<ScanStep>? = .scan(matching: pattern)
        while let request = next {
            let step = try perform(request)
            for key in step.keys where try !body(key) { return }
            next = step.next
        }
    }

    /// Like ``removeAll(tagged:soft:)``, for tags that need not be UTF-8.
    package func removeAll(taggedBytes tags: [[UInt8]], soft: Bool) throws(LarderClientError) {
        let words = try CheckedTags.purged(tags, soft: soft, name)
        guard !words.isEmpty else { return try session.nothing("PURGE", ()) }
        try perform(.purge(tags: words))
    }

    // MARK: Messages

    /// Passes the messages of channels to `visit` as they arrive, on a separate connection, until the connection ends.
    /// - Throws: errors of `visit`, or the reason why the connection ended.
    package func messages(
        of channels: [[UInt8]], arePatterns: Bool, _ visit: (TopicMessage) throws -> Void
    ) throws -> Never {
        try messages([[Array((arePatterns ? "PSUBSCRIBE" : "SUBSCRIBE").utf8)] + channels], visit)
    }

    /// Passes the lines of MONITOR to `visit` as they arrive, until the connection ends.
    /// - Throws: errors of `visit`, or the reason why the connection ended.
    package func monitor(_ visit: (String) throws -> Void) throws -> Never {
        var hasBegun = false
        try session.stream([wordList("MONITOR")], operation: "MONITOR") { reply in
            if let line = try reply.checked("MONITOR").string, hasBegun { try visit(line) }
            hasBegun = true
        }
    }

    /// Passes changes of this client's database to `visit` as they arrive, on a separate connection, until the
    /// connection ends.
    /// - Throws: errors of `visit`, or the reason why the connection ended.
    package func changes(_ entries: WatchedKeys, _ visit: (ReportedChange) throws -> Void) throws -> Never {
        let channels = ChangeChannels(name)
        try messages(Topic.requests("SUBSCRIBE", entries.topics(channels))) { try visit(ReportedChange($0, channels)) }
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

    private func messages(_ requests: [[[UInt8]]], _ visit: (TopicMessage) throws -> Void) throws -> Never {
        let operation = requests.first?.first.map { printableKey($0) } ?? "SUBSCRIBE"
        try session.stream(requests, operation: operation) { reply in
            if let message = try reply.checked(operation).elements.flatMap({ TopicMessage($0) }) { try visit(message) }
        }
    }
}
