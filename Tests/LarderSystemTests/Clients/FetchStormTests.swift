import LarderPlatform
import LarderTestSupport
import Testing

/// Tests with many clients that request the same value: threads in Python, with plain sockets and with redis-py, and
/// processes of larderctl.
@Suite struct FetchStormTests {
    /// For a long run: `LARDER_ROUNDS=300 swift test --filter FetchStormTests`.
    @Test(arguments: [1, 2])
    func onlyOneOfManyClientsFetchesAMissingValue(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let seed = testSeed() & 0xFFFF_FFFF
        let rounds = TestSetting.rounds.number() ?? 2
        try ClientProgram.runPython(
            "fetch_storm.py",
            [daemon.socketPath, try DaemonProcess.program("larderctl"), "\(rounds)", "\(seed)"])
        #expect(try daemon.stop() == .exited(0))
    }

    /// Tests the options of the helpers for Python, JavaScript and PHP in Examples, including fractions and 0.
    @Test(arguments: ["python", "node", "php"])
    func exampleClientsForFETCHApplyTheirOptions(_ language: String) throws {
        let daemon = try DaemonProcess()
        switch language {
        case "python": try ClientProgram.runPython("fetch_options.py", [daemon.socketPath])
        case "node":
            try ClientProgram.require("node", package: "nodejs")
            try ClientProgram.run(
                "node", "fetch_options.js", [daemon.socketPath], environment: ["NODE_PATH=/usr/share/nodejs"])
        default:
            try ClientProgram.require("php", package: "php-cli")
            try ClientProgram.run("php", "fetch_options.php", [daemon.socketPath])
        }
        #expect(try daemon.stop() == .exited(0))
    }
}
