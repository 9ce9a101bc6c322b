import LarderPlatform
import Synchronization

/// The replay of an intact journal while the larder is already in use: the second pass, after ``JournalSurvey``.
///
/// A thread holds all shard locks of a database until the database's operations are applied. So nothing sees a part of
/// them: every use of the database blocks until then. Event loops must not block, so they first ask
/// ``Engine/isReplayed(_:)``. New commit units have higher sequences than the journal, and are appended to new segments.
///
/// If the replay fails, the locks stay held.
///
/// Thread-safe.
final class BackgroundReplay: Sendable {
    private struct State {
        var thread: WorkThread?
        var onProgress: @Sendable () -> Void = {}
    }

    private let recovery: JournalRecovery
    private let isDone = Atomic<Bool>(false)
    private let doneBytes = Atomic<Int>(0)
    private let totalBytes = Atomic<Int>(0)
    private let state = Locked(State())

    init(_ recovery: JournalRecovery) { self.recovery = recovery }

    /// Whether all operations are applied.
    var isOver: Bool { isDone.load(ordering: .acquiring) }

    /// How much of the journal was read, and its size, in bytes; nil when the replay is over. Some atomic loads.
    var progress: (done: Int, total: Int)? { isOver ? nil : (doneBytes.read(), totalBytes.read()) }

    /// Calls `body` now, and after each step, until the replay is over.
    func onProgress(_ body: @escaping @Sendable () -> Void) {
        state.withLock { if !isOver { $0.onProgress = body } }
        body()
    }

    /// Waits until the replay is over or has failed. Called once.
    func wait() { state.withLock { $0.thread.take() }?.join() }

    /// Starts the replay. When it returns, the databases with operations are locked, and groups may be appended.
    /// - Parameters:
    ///   - plan: what is to be replayed; nil for nothing.
    ///   - databases: all databases of the larder.
    ///   - then: called when all operations are applied.
    func start(_ plan: ReplayPlan?, of databases: [Database], then: @escaping @Sendable () -> Void) {
        guard let plan, !plan.parts.isEmpty else {
            if let plan { recovery.noteReplayed(plan.report) }
            return end(then)
        }
        for database in databases where !plan.parts.contains(where: { $0.database === database }) {
            database.isReplayed.store(true, ordering: .releasing)
        }
        totalBytes.add(plan.report.bytes)
        let isOpen = Latch()
        let thread = WorkThread(name: "larder-recover") { [self] in
            do throws(LarderError) {
                try run(plan) { isOpen.set() }
                recovery.noteReplayed(plan.report)
                end(then)
            } catch {
                isOpen.set()
                recovery.context.options.onReplayFailure?(error)
            }
        }
        state.withLock { $0.thread = thread }
        isOpen.wait()
    }

    private func end(_ then: () -> Void) {
        let onProgress = state.withLock { state in
            isDone.store(true, ordering: .releasing)
            defer { state.onProgress = {} }
            return state
        }.onProgress
        onProgress()
        then()
    }

    private func run(_ plan: ReplayPlan, onOpened: () -> Void) throws(LarderError) {
        let databases = plan.parts.map(\.database)
        for database in databases.sorted(by: { $0.number < $1.number }) { database.shards.lockAll() }
        let byName = Dictionary(uniqueKeysWithValues: databases.map { ($0.name, $0) })
        // Do not search the larder's table: a rollback may hold its lock while it waits for the shard locks.
        let applier = JournalApplier(usesThreads: true, filling: databases) { byName[$0] }
        var rest = plan.parts[...]
        let found = Result { () throws(LarderError) in
            try recovery.journal.replayAgain(onOpened: onOpened) { payload, sequence in
                applier.add(payload, sequence)
                doneBytes.add(JournalFormat.frameHeaderBytes + payload.count)
                while let part = rest.first, part.last <= sequence, sequence < plan.report.lastSequence {
                    rest.removeFirst()
                    applier.complete(part.database)
                    release(part.database)
                }
            }
        }
        applier.finish()
        guard try found.get() == plan.report else {
            throw LarderError(
                .io, "the journal has changed while it was replayed", operation: "read the journal")
        }
        for part in rest { release(part.database) }
    }

    private func release(_ database: Database) {
        database.shards.unlockAll()
        database.isReplayed.store(true, ordering: .releasing)
        state.withLock { $0 }.onProgress()
        recovery.context.options.onReplayed(database.name)
    }
}
