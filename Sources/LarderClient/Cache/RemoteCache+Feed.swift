import LarderObserving
import LarderRESP
import LarderWire

// Reading the change feed of a database.

extension RemoteCache {
    /// Returns the changes that any client has made to the database after a position. Each change has a position from
    /// which a later call can continue, even in another process and after a restart of the daemon. If the history after
    /// the position is no longer available, all entries are reported first.
    ///
    /// Each iteration uses its own connection while it waits.
    /// - Parameters:
    ///   - position: where to start: the position of an earlier change, `beginning`, or `now`.
    ///   - prefix: limits the feed to purges, and to entries whose keys begin with `prefix`. To continue from a
    ///     position, use the same prefix as before.
    public func changes(since position: ChangePosition, prefix: some CacheKey = "") -> PositionedChanges<[UInt8]> {
        feed(since: position, prefix.keyBytes) { entry in entry.value }
    }

    /// Returns the same changes as ``changes(since:prefix:)``, with decoded values.
    public func decodedChanges(since position: ChangePosition, prefix: some CacheKey = "") -> PositionedChanges<Value> {
        let codec = codec
        return feed(since: position, prefix.keyBytes) { entry in
            try RemoteCoding.decode(
                Value.self, from: entry.value, codec, storedAs: entry.storedCodec, key: entry.key, "CHANGES")
        }
    }

    /// How long the daemon waits for a change before it replies that nothing has changed, in milliseconds.
    private static var waitMilliseconds: Int { 30_000 }

    private func feed<Read: Sendable>(
        since position: ChangePosition, _ prefix: [UInt8], _ read: @escaping @Sendable (StoredEntry) throws -> Read
    ) -> PositionedChanges<Read> {
        PositionedChanges(since: position) { [self] position in
            guard let reply = try await nextReply(position, prefix) else { return nil }
            let end = ChangePosition(reply.position)
            let elements = PositionedChange<Read>.elements(
                for: reply.items.map(\.change), since: position, upTo: end, beginsPass: reply.reason != nil,
                endsPass: reply.range.map { $0.through == nil } ?? false
            ) { entry, position in
                PositionedChange(
                    .stored, keyBytes: entry.key, tags: entry.tags, storedAt: entry.storedAt,
                    deadline: entry.deadline < 0 ? nil : entry.deadline, position: position,
                    Result { try read(entry) })
            }
            return (elements, end)
        }
    }

    /// Returns the next reply with changes; nil if the task was cancelled or the client was closed.
    private func nextReply(_ position: ChangePosition, _ prefix: [UInt8]) async throws -> FeedReply? {
        var from = position.description
        // The separate connection on which the daemon waits for a change. It is created when the daemon has no more
        // changes; until then, requests use the client's shared connections.
        var link: Link?
        defer { if let link { store.ownConnections.end(link) } }
        while !Task.isCancelled {
            let words = FeedReply.words(
                since: from, prefix: prefix, count: 100, blockMilliseconds: link == nil ? 0 : Self.waitMilliseconds)
            let request = Request<FeedReply>(words, isRead: true, expects: "a map with changes") {
                (reply) throws(LarderClientError) in try FeedReply(reply)
            }
            let reply: FeedReply
            do throws(LarderClientError) {
                reply = try await store.perform(request, on: link)
            } catch {
                if error.code == .cancelled || error.code == .closed && store.links[0].isClosed { return nil }
                throw error
            }
            if !reply.items.isEmpty || reply.reason != nil || reply.range != nil { return reply }
            from = reply.position
            if reply.state == "current", link == nil {
                link = store.ownConnections.begin(waiting: Int64(Self.waitMilliseconds), isSubscribed: true)
            }
        }
        return nil
    }
}
