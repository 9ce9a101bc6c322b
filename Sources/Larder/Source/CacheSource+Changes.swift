import LarderEngine
import LarderObserving
import LarderPlatform

extension ChangeBuffer: ChangeSubscriber {
    package func take(_ changes: [EntryChange]) {
        for change in changes {
            if case .deleted = change.kind { finish((change.database as? Database)?.deletedError("changes")) }
            self.change { pending in
                switch change.kind {
                case .stored: pending.add(.stored, key: change.key)
                case .removed, .outdated: pending.add(.removed, key: change.key)
                case .evicted: pending.add(.evicted, key: change.key)
                case .expired: pending.add(.expired, key: change.key)
                case .purged, .emptied: pending.purge()
                case .purgedTags(let tags): pending.purge(tags: tags)
                case .replaced, .allOutdated: pending.fallBehind()
                case .deleted, .swept, .fetchEnded, .purgedPrefix, .policyChanged: break
                }
            }
        }
    }
}

/// The readers of changes of one cache: its sequences, and tasks that wait for a change. They end when the cache is
/// closed.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class ChangeReaders: @unchecked Sendable {
    private let lock = Lock()
    private var ends: [ObjectIdentifier: @Sendable () -> Void] = [:]
    private var isClosed = false

    /// - Parameter end: ends the reader. Must retain the reader.
    /// - Returns: false if the cache was closed.
    func add(_ reader: AnyObject, _ end: @escaping @Sendable () -> Void) -> Bool {
        lock.withLock {
            if !isClosed { ends[ObjectIdentifier(reader)] = end }
            return !isClosed
        }
    }

    func end(_ reader: AnyObject) { lock.withLock { ends.removeValue(forKey: ObjectIdentifier(reader)) }?() }

    func close() {
        let all = lock.withLock {
            isClosed = true
            defer { ends = [:] }
            return Array(ends.values)
        }
        for end in all { end() }
    }
}

extension CacheSource {
    /// Returns a sequence that collects the changes of the database from now on.
    func changes(_ keys: ObservedKeys, bufferMax: Int) throws(LarderError) -> CacheChanges {
        guard bufferMax >= 1 else {
            throw LarderError(
                .invalidArgument, "bufferMax is \(bufferMax), and must be at least 1", operation: "changes",
                database: database.name)
        }
        return try whileOpen("changes") { (engine) throws(LarderError) in
            if database.isDeleted { throw database.deletedError("changes") }
            let buffer = ChangeBuffer(PendingChanges(max: bufferMax))
            let end = { @Sendable [observation = engine.observation] in
                observation.remove(buffer)
                buffer.finish()
            }
            engine.observation.add(buffer, keys, in: database)
            guard changeReaders.add(buffer, end) else {
                end()
                throw closedError("changes")
            }
            return CacheChanges(buffer, owner: self) { [self] in changeReaders.end($0) }
        }
    }
}
