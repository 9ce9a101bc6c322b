import Synchronization
import Threading

/// Salvages damaged databases, one after the other, on a thread of its own, because it may take as long as reading and
/// writing all of one. See ``Database/salvage(_:_:shouldStop:)``.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the queue is read and written with the lock held.
final class Salvager: @unchecked Sendable {
    private let context: EngineContext
    private let table: DatabaseTable
    private let loop = BackgroundLoop()
    private let lock = Lock()
    private var queue: [DamageReport] = []
    /// Why a database could not be salvaged, as it was said last, by name. Guarded by `lock`.
    private var said: [String: String] = [:]
    private let isStopping = Atomic<Bool>(false)

    /// After a salvage that failed the next try comes so much later, in milliseconds.
    private static let retryMilliseconds: Int64 = 2000
    /// Nothing happens meanwhile unless ``request(_:)`` ends the pause.
    private static let idleMilliseconds: Int64 = 3_600_000

    init(context: EngineContext, table: DatabaseTable) {
        self.context = context
        self.table = table
    }

    func start() {
        loop.start("larder-salvage") { [self] in round() ? Self.retryMilliseconds : Self.idleMilliseconds }
    }

    /// Gives up what is under way, and ends the thread.
    func stop() {
        isStopping.store(true, ordering: .relaxed)
        loop.stop()
    }

    func request(_ report: DamageReport) {
        lock.withLock {
            let isKnown = queue.contains { $0.store === report.store && $0.databaseName == report.databaseName }
            if !isKnown { queue.append(report) }
        }
        loop.wake()
    }

    /// Tries all that is waiting once.
    /// - Returns: whether something is to be tried again.
    func round() -> Bool {
        let reports = lock.withLock {
            defer { queue = [] }
            return queue
        }
        var hasFailed = false
        for report in reports {
            if isStopping.load(ordering: .relaxed) { return false }
            do throws(LarderError) {
                try salvage(report)
                lock.withLock { said[report.databaseName] = nil }
            } catch {
                hasFailed = true
                note(error, report)
            }
        }
        return hasFailed
    }

    private func salvage(_ report: DamageReport) throws(LarderError) {
        // A database that took the name meanwhile has another store, and is left alone.
        guard let database = table.find(report.databaseName) else { return }
        let shouldStop = { [self] in isStopping.load(ordering: .relaxed) }
        if let store = report.store {
            try database.salvage(store, report.error, shouldStop: shouldStop)
        } else {
            try database.salvageUnopened(report.error, shouldStop: shouldStop)
        }
    }

    private func note(_ error: LarderError, _ report: DamageReport) {
        let isNew = lock.withLock {
            queue.append(report)
            defer { said[report.databaseName] = error.message }
            return said[report.databaseName] != error.message
        }
        context.report(
            isNew ? .error : .debug,
            "could not salvage database '\(report.databaseName)', and tries again: \(error)")
    }
}
