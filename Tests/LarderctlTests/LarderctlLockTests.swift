import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of `larderctl lock` with a real daemon.
@Suite(.timeLimit(.minutes(10))) struct LarderctlLockTests {
    private let directory: TemporaryDirectory
    private let daemon: DaemonProcess
    private let larderctl: Larderctl

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
        daemon = try DaemonProcess(in: directory)
        larderctl = Larderctl(socketPath: daemon.socketPath)
        guard mkfifo(directory.path + "/gate", 0o600) == 0 else { throw ChildProcess.Failure(description: "no FIFO") }
    }

    private var gate: String { directory.path + "/gate" }

    private func start(_ words: String...) throws -> ChildProcess {
        try ChildProcess(
            try DaemonProcess.program("larderctl"), ["lock", "l"] + words,
            environment: larderctl.environment + ["PATH=/usr/bin:/bin"])
    }

    /// Starts a process that holds the lock, and waits until its command runs.
    /// - Parameter preparation: commands to run before the command reports its start.
    private func hold(_ words: [String] = [], after preparation: String = ":", _ line: String) throws -> ChildProcess {
        let process = try ChildProcess(
            try DaemonProcess.program("larderctl"),
            ["lock", "l"] + words + ["--", "sh", "-c", preparation + "; echo held >&2; " + line],
            environment: larderctl.environment + ["PATH=/usr/bin:/bin"])
        _ = try process.waitForErrorLine(containing: "held")
        return process
    }

    private func openGate() throws {
        #expect(try ChildProcess.run("sh", ["-c", "echo > '\(gate)'"]).end == .exited(0))
    }

    /// Waits until `count` connections have sent this command as their last one.
    private func waitFor(_ command: String, _ count: Int) throws {
        let observer = try daemon.connect()
        while try observer.call("CLIENT LIST").split(separator: "\n").count(where: { $0.contains("cmd=\(command)") })
            != count
        {}
    }

    @Test func lockRunsItsCommandWithTheLockAndItsToken() throws {
        let first = try larderctl("lock", "l", "--", "/bin/sh", "-c", "echo $LARDER_LOCK_TOKEN")
        let second = try larderctl("lock", "l", "--", "/bin/sh", "-c", "echo $LARDER_LOCK_TOKEN")
        let tokens = try [first, second].map { try #require(UInt64($0.text.dropLast())) }
        #expect(tokens[0] < tokens[1])
        #expect(first.errors.isEmpty && first.exitCode == 0)
        let input = try larderctl("lock", "l", "--", "/bin/cat", input: Array("through".utf8))
        #expect(input.text == "through")
        #expect(try larderctl("get", "l").exitCode == 1)
    }

    @Test("lock exits with the exit code of its command") func lockExitsWithTheCodeOfItsCommand() throws {
        #expect(try larderctl("lock", "l", "--", "/bin/sh", "-c", "exit 44").exitCode == 44)
        #expect(try larderctl("lock", "l", "--", "/bin/sh", "-c", "kill -9 $$").exitCode == 137)
        let missing = try larderctl("lock", "l", "--", "/no/such/program")
        #expect(missing.exitCode == 5)
        #expect(missing.errors == "larderctl: cannot start /no/such/program: No such file or directory\n")
        #expect(try larderctl("get", "l").exitCode == 1)
    }

    @Test func aWaitForALockTimesOut() throws {
        let holder = try hold([], "cat '\(gate)'")
        for wait in ["0", "0.05"] {
            let late = try larderctl("lock", "l", "--wait", wait, "--", "/bin/echo", "no")
            #expect(late.exitCode == 6 && late.text.isEmpty)
            #expect(
                late.errors
                    == "larderctl: l: the lock was not free within the time limit: it has another holder, or another "
                    + "value is stored under its name\n")
        }
        let next = try start("--", "echo", "next")
        try waitFor("fetch", 2)
        try openGate()
        #expect(try next.waitForExit() == .exited(0))
        #expect(next.output == "next\n")
        #expect(try holder.waitForExit() == .exited(0))
    }

    @Test func theLockOfAKilledHolderExpires() throws {
        let holder = try hold(["--for", "0.3"], "kill -9 $PPID")
        #expect(try holder.waitForExit() == .killed(signal: SIGKILL))
        #expect(try larderctl("lock", "l", "--", "/bin/echo", "next").text == "next\n")
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2])
    func lockForwardsSignalsToItsCommand(_ signal: Int32) throws {
        let holder = try hold(after: "trap 'echo trapped; exit 7' \(signal)", "while :; do read x < '\(gate)'; done")
        holder.send(signal: signal)
        #expect(try holder.waitForExit() == .exited(7))
        #expect(holder.output == "trapped\n")
        // If the signal terminates the command, larderctl is terminated by the same signal.
        let second = try hold([], "exec cat '\(gate)'")
        second.send(signal: signal)
        #expect(try second.waitForExit() == .killed(signal: signal))
        #expect(try larderctl("lock", "l", "--wait", "0", "--", "/bin/echo", "free").text == "free\n")
    }

    /// With very few descriptors left, larderctl reports an error or gets the lock; it does not crash.
    @Test("with few file descriptors left, larderctl does not crash", arguments: 6...12)
    func lockDoesNotCrashWithFewDescriptors(_ count: Int) throws {
        let result = try ChildProcess.run(
            "sh", ["-c", "ulimit -n \(count); exec \(try DaemonProcess.program("larderctl")) lock few -- true"],
            environment: larderctl.environment)
        #expect([.exited(0), .exited(3), .exited(5)].contains(result.end), "\(result)")
    }

    @Test func aSignalEndsTheWaitForALock() throws {
        let holder = try hold([], "cat '\(gate)'")
        let waiting = try start("--", "echo", "never")
        try waitFor("fetch", 2)
        waiting.send(signal: SIGTERM)
        #expect(try waiting.waitForExit() == .killed(signal: SIGTERM))
        #expect(waiting.output.isEmpty)
        try openGate()
        #expect(try holder.waitForExit() == .exited(0))
    }

    @Test func aLostLockStopsTheCommand() throws {
        let holder = try hold(["--for", "0.3"], "exec cat '\(gate)'")
        #expect(try larderctl("del", "l").exitCode == 0)
        #expect(try holder.waitForExit() == .exited(7))
        #expect(
            holder.errors.hasSuffix("larderctl: l: the lock was lost: its entry was removed, or has another holder\n"))
    }

    @Test func theLockIsRenewedDuringALongCommand() throws {
        let holder = try hold(["--for", "0.6"], "cat '\(gate)'")
        // Wait longer than a lock is valid without renewal.
        #expect(try larderctl("lock", "l", "--wait", "1.5", "--", "/bin/echo", "no").exitCode == 6)
        try openGate()
        #expect(try holder.waitForExit() == .exited(0))
    }

    @Test func aCommandCannotWaitForItsOwnLock() throws {
        let program = try DaemonProcess.program("larderctl")
        let inner = try larderctl("lock", "l", "--", program, "lock", "l", "--", "/bin/echo", "no")
        #expect(inner.exitCode == 2)
        #expect(inner.errors.contains("l is held by a parent of this process: they would wait for each other"))
        #expect(try larderctl("lock", "l", "--", program, "lock", "m", "--", "/bin/echo", "yes").text == "yes\n")
        // larderctl detects the deadlock even if the socket's path is written differently.
        let spelt = try larderctl(
            "lock", "l", "--", program, "--socket", directory.path + "/./socket", "lock", "l", "--", "/bin/echo", "no")
        #expect(spelt.exitCode == 2, "\(spelt)")
    }

    /// A background process that a command has started gets the lock after it was released.
    @Test("a background process of the command can take the lock after its release")
    func aBackgroundProcessCanTakeTheLockLater() throws {
        let program = try DaemonProcess.program("larderctl")
        let inner = "'\(program)' lock l -- echo later >'\(directory.path)/output' 2>&1"
        let line = "{ read line <'\(gate)'; \(inner); echo >'\(gate)'; } >/dev/null 2>&1 &"
        #expect(try larderctl("lock", "l", "--", "/bin/sh", "-c", line).exitCode == 0)
        try openGate()
        #expect(try ChildProcess.run("sh", ["-c", "read line <'\(gate)'"]).end == .exited(0))
        #expect(try Files.read(directory.path + "/output") == Array("later\n".utf8))
    }

    /// A signal that was ignored at the start of larderctl stays ignored, even while larderctl waits.
    @Test func ignoredSignalsStayIgnored() throws {
        let holder = try hold([], "read line <'\(gate)'")
        let program = try DaemonProcess.program("larderctl")
        let waiter = try ChildProcess(
            "/bin/sh", ["-c", "trap '' HUP INT; echo deaf >&2; exec '\(program)' lock l -- echo served"],
            environment: larderctl.environment + ["PATH=/usr/bin:/bin"])
        _ = try waiter.waitForErrorLine(containing: "deaf")
        waiter.send(signal: SIGHUP)
        waiter.send(signal: SIGINT)
        try openGate()
        #expect(try holder.waitForExit() == .exited(0))
        #expect(try waiter.waitForExit() == .exited(0))
        #expect(waiter.outputBytes == Array("served\n".utf8))
    }

    @Test func lockRefusesInvalidOptions() throws {
        for (words, text) in [
            (
                ["l", "--for", "0", "--", "echo"],
                "250ms, 90s, 15m or 1h, from 0.001 to 86400\n"
            ),
            (
                ["l", "--for", "high", "--", "echo"],
                "250ms, 90s, 15m or 1h, from 0.001 to 86400\n"
            ),
            (
                ["l", "--wait", "86401", "--", "echo"],
                "250ms, 90s, 15m or 1h, from 0 to 86400\n"
            ),
            (["l"], "too few arguments"),
        ] {
            let result = try larderctl.run(["lock"] + words)
            #expect(result.exitCode == 2 && result.errors.contains(text), "\(result.errors)")
        }
    }
}
