import LarderTestSupport
import Testing

/// Hundreds of processes contend for one lock of redis-py. At most one process has it at any time. If the holder is
/// killed, the lock becomes free when its timeout has passed, and not earlier.
@Suite struct LockContentionTests {
    /// For a long run: `LARDER_LOCK_PROCESSES=1000 LARDER_ROUNDS=50 swift test --filter LockContentionTests`.
    @Test(arguments: [1, 4]) func aLockHasAtMostOneHolder(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let seed = testSeed() & 0xFFFF_FFFF
        let processes = TestSetting.lockProcesses.number() ?? 200
        let rounds = TestSetting.rounds.number() ?? 2
        try ClientProgram.runPython(
            "lock_contention.py", [daemon.socketPath, "\(processes)", "\(rounds)", "\(seed)"])
        #expect(try daemon.stop() == .exited(0))
    }
}
