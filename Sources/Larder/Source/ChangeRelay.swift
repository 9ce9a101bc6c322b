import LarderEngine
import LarderObserving
import LarderPlatform

/// Forwards the engine's notifications to a sequence of changes. Thread-safe, because it is immutable.
final class ChangeRelay: EntryObserver {
    let buffer: ChangeBuffer
    let observation: Observation

    init(_ buffer: ChangeBuffer, _ observation: Observation) {
        self.buffer = buffer
        self.observation = observation
    }

    func noticed(_ change: ObservedChange, in database: Database) {
        switch change {
        case .stored(let key): buffer.add(.stored, key: key)
        case .removed(let key): buffer.add(.removed, key: key)
        case .evicted(let key): buffer.add(.evicted, key: key)
        case .expired(let key): buffer.add(.expired, key: key)
        case .purged: buffer.purge()
        case .purgedTags(let tags): buffer.purge(tags: tags)
        case .anything: buffer.fallBehind()
        case .deleted: buffer.finish(database.deletedError("changes"))
        }
    }

    func end() {
        observation.remove(self)
        buffer.finish()
    }
}

/// The sequences of changes of one cache. They end when the cache is closed.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class ChangeRelays: @unchecked Sendable {
    private let lock = Lock()
    private var relays: [ObjectIdentifier: ChangeRelay] = [:]
    private var isClosed = false

    /// - Returns: false if the cache was closed.
    func add(_ relay: ChangeRelay) -> Bool {
        lock.withLock {
            if !isClosed { relays[ObjectIdentifier(relay.buffer)] = relay }
            return !isClosed
        }
    }

    func end(_ buffer: ChangeBuffer) { lock.withLock { relays.removeValue(forKey: ObjectIdentifier(buffer)) }?.end() }

    func close() {
        let all = lock.withLock {
            isClosed = true
            defer { relays = [:] }
            return Array(relays.values)
        }
        for relay in all { relay.end() }
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
            let buffer = ChangeBuffer(max: bufferMax)
            let relay = ChangeRelay(buffer, engine.observation)
            engine.observation.add(relay, keys, in: database)
            guard relays.add(relay) else {
                relay.end()
                throw closedError("changes")
            }
            return CacheChanges(buffer, owner: self) { [self] in relays.end($0) }
        }
    }
}
