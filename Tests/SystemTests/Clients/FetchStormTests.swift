import Platform
import TestSupport
import Testing

/// Many processes want one value: threads of Python with nothing but sockets, and with redis-py, and larderctl.
@Suite struct FetchStormTests {
    /// `LARDER_ROUNDS=300 swift test --filter FetchStormTests` for the long form.
    @Test(arguments: [1, 2]) func oneOfAllAsksTheOrigin(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let seed = testSeed() & 0xFFFF_FFFF
        let rounds = TestSetting.rounds.number() ?? 2
        try ClientProgram.runPython(
            "fetch_storm.py",
            [daemon.socketPath, try DaemonProcess.program("larderctl"), "\(rounds)", "\(seed)"])
        #expect(try daemon.stop() == .exited(0))
    }
}
