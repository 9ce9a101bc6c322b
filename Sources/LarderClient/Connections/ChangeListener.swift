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
        guard let key = channels.key(in: message.channel) else { return takeForAll(message.payload) }
        near?.invalidate([key])
        buffer.change { pending in
            switch CacheChange.Kind(rawValue: String(decoding: message.payload, as: UTF8.self)) {
            case .some(let kind) where kind != .purged && kind != .fellBehind: pending.add(kind, key: key)
            // A newer daemon may report other kinds of changes. Treat them as lost changes.
            default: pending.fallBehind()
            }
        }
    }

    private func takeForAll(_ payload: [UInt8]) {
        near?.invalidate(nil)
        let purgedTag = Array("purged ".utf8)
        buffer.change { pending in
            if payload == Array("purged".utf8) {
                pending.purge()
            } else if payload.starts(with: purgedTag) {
                pending.purge(tags: [Array(payload.dropFirst(purgedTag.count))])
            } else {
                pending.fallBehind()
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
