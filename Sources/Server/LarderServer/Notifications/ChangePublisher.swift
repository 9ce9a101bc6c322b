import LarderEngine

/// Publishes changes of entries to the channels of ``ChangeChannels`` while these have subscribers. Unlike keyspace
/// notifications, this needs no setting, and the messages contain the kind of the change instead of a command's name.
///
/// Thread-safe: immutable.
final class ChangePublisher: ChangeSubscriber {
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

    func take(_ changes: [EntryChange]) {
        for change in changes {
            switch change.kind {
            case .stored: publish("stored", change.key, change.database)
            case .removed, .outdated: publish("removed", change.key, change.database)
            case .evicted: publish("evicted", change.key, change.database)
            case .expired: publish("expired", change.key, change.database)
            case .purged, .emptied, .deleted: publish("purged", of: change.database)
            case .purgedTags(let tags): for tag in tags { publish("purged ", tag, of: change.database) }
            case .replaced, .allOutdated: publish("fellbehind", of: change.database)
            case .swept, .fetchEnded, .purgedPrefix, .policyChanged: break
            }
        }
    }

    private func publish(_ kind: String, _ key: [UInt8], _ database: any DatabaseIdentity) {
        pubsub.publishChange(ChangeChannels(database.name).of(key), Array(kind.utf8))
    }

    private func publish(_ kind: String, _ tag: [UInt8] = [], of database: any DatabaseIdentity) {
        pubsub.publishChange(ChangeChannels(database.name).all, Array(kind.utf8) + tag)
    }
}
