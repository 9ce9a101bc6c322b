import LarderObserving
import LarderPlatform
import Synchronization

/// Converts the daemon's messages into changes of entries. Invalidates the near cache first, so that a read after a
/// reported change returns the state after that change or a newer one.
///
/// Thread-safe.
final class ChangeListener: TopicListener {
    let buffer: ChangeBuffer
    let topics: [Topic]
    private let channels: ChangeChannels
    private let near: NearCache?
    private let socketPath: String
    private let isLost = Atomic(false)

    init(_ keys: WatchedKeys, of database: DatabaseStore, max: Int, socketPath: String) {
        buffer = ChangeBuffer(PendingChanges(max: max))
        channels = ChangeChannels(database.name)
        near = database.near
        self.socketPath = socketPath
        topics = keys.topics(channels)
    }

    func take(_ message: TopicMessage) {
        let change = ReportedChange(message, channels)
        near?.invalidate(change.key.map { [$0] })
        buffer.change { pending in
            switch (change.key, CacheChange.Kind(rawValue: String(decoding: change.kind, as: UTF8.self))) {
            case (nil, .purged?): if let tag = change.tag { pending.purge(tags: [tag]) } else { pending.purge() }
            case (let key?, let kind?) where kind != .purged && kind != .fellBehind: pending.add(kind, key: key)
            // A newer daemon may report other kinds of changes. Treat them as lost changes.
            default: pending.fallBehind()
            }
        }
    }

    func connectionWasLost() {
        guard !isLost.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let error = LarderClientError(
            .closed, "the connection was lost; after the reconnection the sequence continues with fellBehind",
            operation: "changes", socketPath: socketPath)
        buffer.change { $0.lose(error) }
    }

    func isRestored() {
        isLost.store(false, ordering: .releasing)
        // Values that were read while the connection was lost may be older than the changes reported from now on.
        near?.invalidate(nil)
        buffer.change { $0.fallBehind() }
    }

    func finish(_ error: LarderClientError?) { buffer.finish(error) }
}

/// A change of one entry or of all entries, as the daemon reports it in a message.
package struct ReportedChange {
    /// Nil for a change that affects all entries.
    package let key: [UInt8]?
    /// The kind of the change, in the daemon's words: `stored`, `removed`, `expired`, `evicted`, `purged`,
    /// `fellbehind`, or a newer one.
    package let kind: [UInt8]
    /// The tag whose entries were purged.
    package let tag: [UInt8]?

    private static let tagPurge = Array("purged ".utf8)

    /// - Parameter channels: the channels of the database.
    init(_ message: TopicMessage, _ channels: ChangeChannels) {
        let isTag = message.payload.starts(with: Self.tagPurge)
        key = channels.key(in: message.channel)
        kind = isTag ? Array(Self.tagPurge.dropLast()) : message.payload
        tag = isTag ? Array(message.payload.dropFirst(Self.tagPurge.count)) : nil
    }
}
