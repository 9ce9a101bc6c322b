import LarderPlatform
import Synchronization

/// Salvages damaged databases, one at a time, on its own thread, because reading and writing a whole database may take
/// long. See ``Database/salvage(_:_:shouldStop:)``.
///
/// Thread-safe.
final class Salvager: Sendable {
    private struct State {
        var queue: [DamageReport] = []
        /// The error message of the last failed salvage, by the database's name.
        var said: [String: String] = [:]
    }

    private let context: EngineContext
    private let table: DatabaseTable
    private let loop = BackgroundLoop()
    private let state = Locked(State())
    private let isStopping = Atomic<Bool>(false)

    /// The time in milliseconds between a failed salvage and the next attempt.
    private static let retryMilliseconds: Int64 = 2000
    /// The time in milliseconds until the thread next runs if no salvage is waiting. ``request(_:)`` wakes it earlier.
    private static let idleMilliseconds: Int64 = 3_600_000

    init(context: EngineContext, table: DatabaseTable) { (self.context, self.table) = (context, table) }

    func start(onDemand: Bool) {
        loop.start("larder-salvage", onDemand: onDemand) { [self] in
            round() ? Self.retryMilliseconds : Self.idleMilliseconds
        }
    }

    /// Cancels the running salvage, and stops the thread.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
        loop.stop()
    }

    func request(_ report: DamageReport) {
        state.withLock { state in
            let isKnown = state.queue.contains {
                $0.store === report.store && $0.databaseName == report.databaseName
            }
            if !isKnown { state.queue.append(report) }
        }
        loop.wake()
    }

    /// Tries each waiting salvage once.
    /// - Returns: whether any has failed and must be retried.
    func round() -> Bool {
        let reports = state.withLock { exchange(&$0.queue, with: []) }
        var hasFailed = false
        for report in reports {
            if isStopping.load(ordering: .relaxed) { return false }
            do throws(LarderError) {
                try salvage(report)
                state.withLock { $0.said[report.databaseName] = nil }
            } catch {
                hasFailed = true
                note(error, report)
            }
        }
        return hasFailed
    }

    private func salvage(_ report: DamageReport) throws(LarderError) {
        // If a new database has the same name now, its store is not the reported one, and the call below does nothing.
        guard let database = table.find(report.databaseName) else { return }
        let shouldStop = { [self] in isStopping.load(ordering: .relaxed) }
        try database.salvage(report.store, report.error, shouldStop: shouldStop)
    }

    private func note(_ error: LarderError, _ report: DamageReport) {
        let isNew = state.withLock { state in
            state.queue.append(report)
            return state.said.updateValue(error.message, forKey: report.databaseName) != error.message
        }
        context.report(
            isNew ? .error : .debug,
            "could not salvage database '\(report.databaseName)', will retry: \(error)", database: report.databaseName)
    }
}
