import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that only one process can have a larder open, and that other processes get its PID and socket. The test
/// processes terminate with _exit, so that no leak check runs while the larder is open.
@Suite struct HolderTests {
    @Test func theErrorOfASecondProcessNamesTheHoldersPidAndSocket() async throws {
        let larder = try TestLarder { $0.holderSocket = "/run/larder/larder.sock" }
        _ = try larder.engine()
        let path = larder.path
        let pid = Int(getpid())
        #expect(Engine.holder(of: path)?.pid == "\(pid)")
        #expect(Engine.holder(of: path)?.socket == "/run/larder/larder.sock")
        await #expect(processExitsWith: .success) { [path = path as String, pid = pid as Int] in
            do throws(LarderError) {
                _ = try Engine.open(path)
                _exit(3)
            } catch {
                guard error.code == .larderHeld else { _exit(4) }
                guard error.message.contains("process \(pid):") else { _exit(5) }
                guard error.message.contains("/run/larder/larder.sock") else { _exit(6) }
                _exit(0)
            }
        }
        // The refused attempt changed neither the contents of LOCK nor the lock.
        #expect(Engine.holder(of: path)?.pid == "\(pid)")
        larder.close()
        await #expect(processExitsWith: .success) { [path = path as String] in
            guard let engine = try? Engine.open(path) else { _exit(3) }
            guard Engine.holder(of: path)?.pid == "\(getpid())", Engine.holder(of: path)?.socket == nil else {
                _exit(4)
            }
            engine.shutdown()
            _exit(0)
        }
    }

    @Test func theErrorStatesThatTheHolderServesNoSocket() async throws {
        let larder = try TestLarder()
        _ = try larder.engine()
        await #expect(processExitsWith: .success) { [path = larder.path as String] in
            do throws(LarderError) {
                _ = try Engine.open(path)
                _exit(3)
            } catch {
                _exit(error.message.contains("it serves no socket") ? 0 : 4)
            }
        }
    }

    @Test func aKilledProcessReleasesTheLarder() async throws {
        let larder = try TestLarder()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = larder.path as String] in
            let engine = try Engine.open(path)
            let database = try engine.openDatabase("books")
            for number in 0..<100 { try database.put("k\(number)", "v") }
            kill(getpid(), SIGKILL)
        }
        #expect(try larder.database().count(includingExpired: true) == 100)
    }

    @Test func aForkedChildProcessCannotUseTheLarder() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        defer { directory.remove() }
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            // Use everything once before the fork: the child would wait forever for a lock of the Swift runtime that
            // another thread held at that time, and the runtime locks when a generic type is used for the first time.
            let closed = try OpenLarder(path + "/closed")
            closed.engine.shutdown()
            guard closed.errorCodes(path).allSatisfy({ $0 != .forked }) else { _exit(8) }
            let larder = try OpenLarder(path + "/larder")
            guard let fork = systemFork() else { _exit(9) }
            let child = fork()
            if child == 0 {
                _exit(larder.errorCodes(path).allSatisfy { $0 == .forked } ? 0 : 1)
            }
            var status: Int32 = 0
            guard waitpid(child, &status, 0) == child, status == 0 else { _exit(2) }
            // The parent process is not affected and still has the larder open.
            try larder.database.put("b", "2")
            guard try larder.snapshot.value("a") == "1", try larder.database.value("b") == "2" else { _exit(3) }
            larder.engine.shutdown()
            _exit(0)
        }
    }
}

/// A larder with one entry, and all kinds of views.
private struct OpenLarder {
    let engine: Engine
    let database: Database
    let snapshot: Snapshot
    let cursor: EntryCursor?

    init(_ path: String) throws {
        engine = try Engine.open(path)
        database = try engine.openDatabase("books")
        try database.put("a", "1")
        snapshot = try database.snapshot()
        cursor = try database.cursor()
    }

    /// Calls all kinds of functions, and returns the codes of the errors that they throw.
    /// - Parameter path: a directory.
    func errorCodes(_ path: String) -> [LarderError.Code?] {
        let codes = [
            errorCode { _ = try database.value("a") }, errorCode { try database.put("a", "2") },
            errorCode { _ = try snapshot.value("a") }, errorCode { _ = try cursor?.next() },
            errorCode { _ = try database.purge() },
            errorCode { _ = try database.count(includingExpired: true) },
            errorCode { _ = try engine.deleteDatabase("books") }, errorCode { try database.setPolicy(.low) },
            errorCode { _ = try engine.openDatabase("new") },
            errorCode { _ = try Engine.open(path + "/x") },
            errorCode { try engine.pipeline.waitForAllCommits() },
            errorCode { _ = try database.purge(.prefix([])) },
        ]
        snapshot.close()
        cursor?.close()
        engine.shutdown()
        engine.maintain()
        return codes
    }
}

/// Returns fork(2), which Swift hides because running Swift code in the child is unsafe.
private func systemFork() -> (@convention(c) () -> pid_t)? {
    guard let symbol = dlsym(dlopen(nil, RTLD_NOW), "fork") else { return nil }
    return unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)
}
