import LarderLevelDB
import LarderPlatform

/// Frees disk space by making LevelDB merge the tables of stores from which much was deleted. Has its own thread,
/// because merging takes long. Merges one part of a store at a time, so that closing or reopening the store waits for
/// only one part.
///
/// Thread-safe.
final class Compactor: Sendable {
    private let context: EngineContext
    private let loop = BackgroundLoop()
    private let queue = Locked<[(store: EpochStore, part: Int)]>([])

    /// The pause while there are no requests, in milliseconds: an hour. ``request(_:)`` ends it early.
    private static let idleMilliseconds: Int64 = 3_600_000
    /// The pause between two parts, in milliseconds, in which other work can run.
    private static let pauseMilliseconds: Int64 = 5

    init(context: EngineContext) { self.context = context }

    func start(onDemand: Bool) {
        loop.start("larder-compact", onDemand: onDemand) { [self] in
            step() ? Self.pauseMilliseconds : Self.idleMilliseconds
        }
    }

    /// Waits for the running part, and then stops the thread.
    func stop() { loop.stop() }

    func request(_ store: EpochStore) {
        let isNew = queue.withLock { queue in
            guard !queue.contains(where: { $0.store === store }) else { return false }
            queue.append((store, 0))
            return true
        }
        if isNew { loop.wake() }
    }

    /// Merges one part of the first store in the queue.
    /// - Returns: whether there are more parts or stores.
    func step() -> Bool {
        guard let (store, part) = queue.withLock({ $0.first }) else { return false }
        let hasMore: Bool
        do throws(LarderError) {
            hasMore = try store.compact(part: part)
        } catch {
            context.report(
                .debug, "compacting database '\(store.databaseName)' stopped: \(error)", database: store.databaseName)
            hasMore = false
        }
        if !hasMore { context.statistics.compactions.add() }
        return queue.withLock { queue in
            if hasMore { queue[0].part += 1 } else { queue.removeFirst() }
            return !queue.isEmpty
        }
    }
}
