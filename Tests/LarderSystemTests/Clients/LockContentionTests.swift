import LarderTestSupport
import Testing

/// Hundreds of processes want one lock of redis-py: never two have it, and one that is killed leaves none beyond its time.
@Suite struct LockContentionTests {
    /// `LARDER_LOCK_PROCESSES=1000 LARDER_ROUNDS=50 swift test --filter LockContentionTests` for the long form.
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
