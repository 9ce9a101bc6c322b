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
/// Thread-safe.
final class ChangeReaders: Sendable {
    /// The functions that end the readers; nil after the cache was closed.
    private let ends = Locked<[ObjectIdentifier: @Sendable () -> Void]?>([:])

    /// - Parameter end: ends the reader. Must retain the reader.
    /// - Returns: false if the cache was closed.
    func add(_ reader: AnyObject, _ end: @escaping @Sendable () -> Void) -> Bool {
        let id = ObjectIdentifier(reader)
        return ends.withLock { ends in
            ends?[id] = end
            return ends != nil
        }
    }

    func end(_ reader: AnyObject) {
        let id = ObjectIdentifier(reader)
        ends.withLock { $0?.removeValue(forKey: id) }?()
    }

    func close() {
        let all = ends.withLock { $0.take() ?? [:] }
        for end in all.values { end() }
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

extension CacheSource {
    /// Returns the sequence of changes after a position.
    /// - Parameter read: reads the value of an entry.
    func feed<Value: Sendable>(
        since position: ChangePosition, _ prefix: some CacheKey,
        _ read: @escaping @Sendable (Record, [UInt8]) throws -> Value
    ) throws(LarderError) -> PositionedChanges<Value> {
        guard FeedPosition(position.description) != nil else {
            throw LarderError(
                .invalidArgument,
                "invalid position '\(printableKey(position.description.utf8))': no change has returned it",
                operation: "changes", database: database.name)
        }
        var options = FeedOptions()
        options.prefix = Array(try key(prefix, "changes").bytes)
        let chosen = options
        return PositionedChanges(since: position) { [self] position in
            guard let step = try await nextStep(position, chosen) else { return nil }
            let end = ChangePosition(step.position.description)
            let elements = PositionedChange<Value>.elements(
                for: step.changes.map(\.change), since: position, upTo: end, beginsPass: step.reason != nil,
                endsPass: step.range.map { $0.through == nil } ?? false
            ) { entry, position in
                PositionedChange(
                    .stored, keyBytes: entry.key, tags: entry.record.tags?.all ?? [], storedAt: entry.header.storedAt,
                    deadline: entry.deadline, position: position, Result { try read(entry.record, entry.key) })
            }
            return (elements, end)
        }
    }

    /// Returns the next step of the feed, after waiting for changes if there are none; nil if this cache was closed or
    /// the task was cancelled.
    private func nextStep(_ text: ChangePosition, _ options: FeedOptions) async throws -> FeedStep? {
        guard var position = FeedPosition(text.description) else { return nil }
        while !isClosed, !Task.isCancelled {
            let from = position
            let step: FeedStep
            do throws(LarderError) {
                step = try await BlockingWork.run { [self] () throws(LarderError) in
                    try whileOpen("changes") { (_) throws(LarderError) in try database.feed.step(since: from, options) }
                }
            } catch {
                if error.code == .closed { return nil }
                throw error
            }
            if !step.changes.isEmpty || step.reason != nil || step.range != nil { return step }
            position = step.position
            if step.state == .current { await wait(behind: position, options.prefix) }
        }
        return nil
    }

    /// Waits until there is a change after `position`, the task is cancelled, or this cache is closed.
    private func wait(behind position: FeedPosition, _ prefix: [UInt8]) async {
        guard case .behind(let feed?, let place) = position.start else { return }
        let signal = Promise<Void>()
        guard changeReaders.add(signal, { signal.set(()) }) else { return }
        defer { changeReaders.end(signal) }
        let waiter = FeedWaiter(prefix: prefix) { signal.set(()) }
        guard database.feed.wait(waiter, feed: feed, behind: place) else { return }
        await withTaskCancellationHandler {
            await signal.value()
        } onCancel: {
            signal.set(())
        }
        database.feed.stopWaiting(waiter)
    }
}
