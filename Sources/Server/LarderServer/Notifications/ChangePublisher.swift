import LarderEngine

/// Publishes changes of entries to the channels of ``ChangeChannels`` while these have subscribers. Unlike keyspace
/// notifications, this needs no setting, and the messages contain the kind of the change instead of a command's name.
///
/// Thread-safe: immutable.
final class ChangePublisher: EntryObserver {
    private let engine: Engine
    private let pubsub: PubSub

    init(engine: Engine, pubsub: PubSub) {
        self.engine = engine
        self.pubsub = pubsub
        pubsub.onChangeTopics { [weak self] name, isFirst, isLast in self?.listen(name, isFirst, isLast) }
    }

    private func listen(_ name: [UInt8], _ isFirst: Bool, _ isLast: Bool) {
        if isLast { return engine.observation.remove(self) }
        if isFirst { engine.observation.add(self, .prefix([]), in: nil) }
        guard let (name, key) = ChangeChannels.parse(name) else { return }
        engine.observation.watch(key, in: name)
    }

    func noticed(_ change: ObservedChange, in database: Database) {
        switch change {
        case .stored(let key): publish("stored", key, database)
        case .removed(let key): publish("removed", key, database)
        case .evicted(let key): publish("evicted", key, database)
        case .expired(let key): publish("expired", key, database)
        case .purged, .deleted: publish("purged", database)
        case .purgedTags(let tags): for tag in tags { publish("purged ", tag, of: database) }
        case .anything: publish("fellbehind", database)
        }
    }

    /// Publishes changes that the origin has reported, so that subscribers discard their copies.
    /// - Parameter keys: the changed keys; nil if any key of the database may have changed.
    func noticedByOrigin(_ keys: [[UInt8]]?, _ database: Database) {
        guard pubsub.hasChangeListeners else { return }
        if let keys {
            for key in keys { noticed(.removed(key: key), in: database) }
        } else {
            noticed(.anything, in: database)
        }
    }

    private func publish(_ kind: String, _ key: [UInt8], _ database: Database) {
        pubsub.publishChange(ChangeChannels(database.name).of(key), Array(kind.utf8))
    }

    private func publish(_ kind: String, _ tag: [UInt8] = [], of database: Database) {
        pubsub.publishChange(ChangeChannels(database.name).all, Array(kind.utf8) + tag)
    }

    private func publish(_ kind: String, _ database: Database) { publish(kind, of: database) }
}
