import LarderPlatform

/// A load that runs on its own thread during another measurement.
///
/// Thread-safe. `@unchecked Sendable`: the thread writes `outcome` before it exits, and `outcome` is read after the
/// thread was joined.
final class LoadTask: @unchecked Sendable {
    private let flag = LoadGenerator.StopFlag()
    private var outcome: Result<LoadReport, BenchError>?
    private var thread: WorkThread?

    /// Starts a load.
    init(_ load: Load, _ server: RunningServer) {
        let socket = server.socket
        let dialect = server.contender.dialect
        thread = WorkThread(name: "load") { [self] in
            do throws(BenchError) {
                outcome = .success(try LoadGenerator(load, socket: socket, dialect: dialect, stop: flag).run())
            } catch {
                outcome = .failure(error)
            }
        }
    }

    /// Waits until the load has ended.
    /// - Parameter now: whether to stop the load at once.
    func finish(now: Bool) throws(BenchError) -> LoadReport {
        if now { flag.set() }
        thread?.join()
        thread = nil
        guard let outcome else { throw BenchError("the load was ended already") }
        self.outcome = nil
        return try outcome.get()
    }
}
