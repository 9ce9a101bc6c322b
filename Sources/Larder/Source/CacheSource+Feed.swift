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
