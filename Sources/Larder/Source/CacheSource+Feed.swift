import LarderEngine
import LarderObserving
import LarderPlatform

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
            return (Self.changes(step, since: position, read), ChangePosition(step.position.description))
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

    private static func changes<Value: Sendable>(
        _ step: FeedStep, since previous: ChangePosition, _ read: (Record, [UInt8]) throws -> Value
    ) -> [PositionedChange<Value>] {
        var changes: [PositionedChange<Value>] = []
        let end = ChangePosition(step.position.description)
        let endsPass = step.range.map { $0.through == nil } ?? false
        if step.reason != nil { changes.append(PositionedChange(.passBegan, position: previous)) }
        for (index, change) in step.changes.enumerated() {
            let isLast = index + 1 == step.changes.count && !endsPass
            changes.append(Self.change(change, isLast ? end : previous, read))
        }
        if endsPass { changes.append(PositionedChange(.passEnded, position: end)) }
        return changes
    }

    private static func change<Value: Sendable>(
        _ change: FeedChange, _ position: ChangePosition, _ read: (Record, [UInt8]) throws -> Value
    ) -> PositionedChange<Value> {
        switch change.kind {
        case .stored(let key, let record, let header, let deadline):
            PositionedChange(
                .stored, keyBytes: key, tags: record.tags?.all ?? [], storedAt: header.storedAt, deadline: deadline,
                position: position, Result { try read(record, key) })
        case .removed(let key): PositionedChange(.removed, keyBytes: key, position: position)
        case .purged: PositionedChange(.purged, position: position)
        case .purgedPrefix(let prefix): PositionedChange(.purged, prefixBytes: prefix, position: position)
        case .purgedTags(let tags): PositionedChange(.purged, tags: tags, position: position)
        }
    }
}
