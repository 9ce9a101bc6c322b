import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of `larderctl fetch` with a daemon: which of several calls runs its command, and the results of the other
/// calls.
@Suite struct LarderctlFetchTests {
    /// A daemon, and a pipe from which commands read until the test writes to it.
    private final class Place {
        let directory: TemporaryDirectory
        let daemon: DaemonProcess
        let larderctl: Larderctl
        private let observer: SocketClient

        init() throws {
            directory = try TemporaryDirectory(inMemory: true)
            daemon = try DaemonProcess(in: directory)
            larderctl = Larderctl(socketPath: daemon.socketPath)
            observer = try daemon.connect()
            guard mkfifo(gate, 0o600) == 0 else { throw ChildProcess.Failure(description: "no FIFO") }
        }

        var gate: String { directory.path + "/gate" }
        /// A file with a line for each run of ``command(_:)``.
        var log: String { directory.path + "/log" }

        /// Starts `larderctl fetch k`.
        func start(_ words: [String]) throws -> ChildProcess {
            try ChildProcess(
                try DaemonProcess.program("larderctl"), ["fetch", "k"] + words,
                environment: larderctl.environment)
        }

        /// A command that reports its start, and then writes the text that arrives in the pipe `gate`.
        var command: [String] { ["--", "sh", "-c", "echo runs | tee -a '\(log)' >&2; cat '\(gate)'"] }

        func open(_ text: String) throws {
            let end = try ChildProcess.run("sh", ["-c", "printf '\(text)' > '\(gate)'"]).end
            #expect(end == .exited(0))
        }

        var runs: Int {
            get throws {
                try ChildProcess.run("sh", ["-c", "cat '\(log)'"]).output.split(separator: "\n").count
            }
        }

        /// Waits until `count` connections have sent FETCH and are still open.
        func waitForFetches(_ count: Int) throws {
            while true {
                let list = try observer.call("CLIENT LIST")
                if list.split(separator: "\n").count(where: { $0.contains("cmd=fetch") }) == count { return }
            }
        }

        /// Waits until the entry has expired.
        func waitForEnd() throws { while try observer.call("GET k") != "$-1\r\n" {} }
    }

    private func shell(_ line: String) -> [String] { ["--", "sh", "-c", line] }

    @Test("only one of several concurrent calls of fetch runs the command")
    func onlyOneOfManyFetchCallsRunsTheCommand() throws {
        let place = try Place()
        let calls = try (0..<12).map { _ in try place.start(place.command) }
        try place.waitForFetches(calls.count)
        try place.open("made")
        for call in calls {
            #expect(try call.waitForExit() == .exited(0))
            #expect(call.output == "made")
        }
        #expect(try place.runs == 1)
        #expect(try place.larderctl("fetch", "k", "--", "false").text == "made")
    }

    @Test("if a call is killed, a waiting call gets the lease at once")
    func aWaitingCallReplacesAKilledOneAtOnce() throws {
        let place = try Place()
        let first = try place.start(place.command)
        _ = try first.waitForErrorLine(containing: "runs")
        // The lease is valid for 30 seconds. The second call would time out if it had to wait until then.
        let second = try place.start(["--wait", "10000"] + shell("echo second"))
        try place.waitForFetches(2)
        first.send(signal: SIGKILL)
        #expect(try second.waitForExit() == .exited(0))
        #expect(second.output == "second\n")
        // The command of the first call is still running.
        try place.open("late")
        #expect(try first.waitForExit() == .killed(signal: SIGKILL))
        #expect(try place.larderctl("get", "k").text == "second\n")
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP], [[], ["--lease", "600000"]])
    func aSignalStopsTheCommandAndReleasesTheLease(_ signal: Int32, _ options: [String]) throws {
        let place = try Place()
        // The background process keeps running, and keeps the output's pipe open.
        let call = try place.start(
            options + shell("cat '\(place.gate)' & echo runs >&2; cat '\(place.gate)'"))
        _ = try call.waitForErrorLine(containing: "runs")
        let end = try ChildProcess.run("sh", ["-c", "kill -\(signal) \(call.pid)"]).end
        #expect(end == .exited(0))
        // This call gets the lease at once, or waits for its release.
        let next = try place.larderctl("fetch", "k", "--wait", "10000", "--", "echo", "next")
        #expect(next.text == "next\n", "\(next.errors)")
        try place.open("late")
        #expect(try call.waitForExit() == .killed(signal: signal))
        #expect(call.output.isEmpty)
    }

    @Test func aKilledCommandReleasesTheLease() throws {
        let place = try Place()
        let killed = try place.start(["--lease", "600000"] + shell("cat '\(place.gate)' & kill -9 $$"))
        #expect(
            try killed.waitForErrorLine(containing: "terminated") == "larderctl: k: signal 9 terminated the command")
        #expect(try place.larderctl("fetch", "k", "--wait", "10000", "--", "echo", "next").text == "next\n")
        try place.open("late")
        #expect(try killed.waitForExit() == .exited(6))
    }

    @Test func fetchHasDistinctExitCodes() throws {
        let place = try Place()
        let larderctl = place.larderctl
        func fetch(_ words: String...) throws -> Larderctl.Result {
            try larderctl.run(["fetch", "k", "--wait", "0"] + words)
        }
        let failed = try fetch("--", "sh", "-c", "exit 3")
        #expect(failed.exitCode == 6 && failed.text.isEmpty)
        #expect(failed.errors == "larderctl: k: the command failed with exit code 3\n")
        let rests = try fetch("--json", "--", "echo", "v")
        #expect(rests.exitCode == 6 && rests.text.hasPrefix(#"{"key":"k","state":"failed","value":null,"age":null,"#))
        #expect(
            rests.errors.hasPrefix(
                #"{"error":{"code":"fetch","message":"k: the origin failed recently; retry in "#))
        #expect(rests.errors.hasSuffix(#","exit":6}}"# + "\n"))
        #expect(try larderctl("del", "k").exitCode == 1)
        #expect(try fetch("--back-off", "0", "--", "false").exitCode == 6)
        let absent = try fetch("--absent", "44", "--absent-for", "600000", "--", "sh", "-c", "exit 44")
        #expect(absent.exitCode == 1 && absent.text.isEmpty && absent.errors.isEmpty)
        let remembered = try fetch("--", "echo", "v")
        #expect(remembered.exitCode == 1 && remembered.text.isEmpty && remembered.errors.isEmpty)
        #expect(try larderctl("del", "k").exitCode == 1)
        let made = try fetch("--json", "--ttl", "600", "--grace", "60", "--jitter", "5", "--", "printf", "v")
        #expect(made.text == #"{"key":"k","state":"lead","value":"v","age":0,"ttl":null,"stored":true}"# + "\n")
        let fresh = try fetch("--json", "--", "false")
        #expect(fresh.text.hasPrefix(#"{"key":"k","state":"fresh","value":"v","age":"#))
        #expect(try larderctl("--json", "META", "k").text.contains(#""grace":60000"#))
        let same = try fetch("--max-age", "0", "--same", "9", "--json", "--", "sh", "-c", "exit 9")
        #expect(same.text == #"{"key":"k","state":"lead","value":"v","age":0,"ttl":null,"stored":true}"# + "\n")
        let missing = try larderctl("fetch", "other", "--", "/no/such/program")
        #expect(missing.exitCode == 5 && missing.errors.contains("/no/such/program"))
        #expect(try larderctl("fetch", "other", "--wait", "0", "--", "echo", "v").text == "v\n")
    }

    @Test("a stale value is served during a refresh, and after a failed one")
    func staleIsServedWhileOneRefreshesAndIfItFails() throws {
        let place = try Place()
        let short = ["--ttl", "0.05", "--grace", "600"]
        #expect(try place.start(short + ["--", "printf", "old"]).waitForExit() == .exited(0))
        try place.waitForEnd()
        let leads = try place.start(short + place.command)
        _ = try leads.waitForErrorLine(containing: "runs")
        let other = try place.larderctl("fetch", "k", "--json", "--", "false")
        #expect(other.text.hasPrefix(#"{"key":"k","state":"stale","value":"old","age":"#))
        #expect(other.text.hasSuffix(#","ttl":0,"stored":false}"# + "\n"))
        try place.open("new")
        #expect(try leads.waitForExit() == .exited(0))
        #expect(leads.output == "new")
        try place.waitForEnd()
        let asJSON = try place.larderctl("fetch", "k", "--json", "--back-off", "0", "--", "false")
        #expect(asJSON.exitCode == 0 && asJSON.text.hasPrefix(#"{"key":"k","state":"stale","value":"new","age":"#))
        let warning = #"{"warning":{"code":"fetch","message":"k: the command failed with exit code 1","exit":0}}"#
        #expect(asJSON.errors == warning + "\n")
        let young = ["fetch", "k", "--back-off", "0", "--max-age", "600000", "--", "false"]
        #expect(try place.larderctl.run(young).text == "new")
        let tooOld = try place.larderctl("fetch", "k", "--back-off", "0", "--max-age", "0", "--", "false")
        #expect(tooOld.exitCode == 6 && tooOld.text.isEmpty)
        #expect(tooOld.errors.hasSuffix("with exit code 1, and the stored value is older than --max-age\n"))
        let failing = try place.larderctl("fetch", "k", "--", "false")
        #expect(failing.exitCode == 0 && failing.text == "new")
        #expect(failing.errors == "larderctl: k: the command failed with exit code 1\n")
        #expect(try place.larderctl("fetch", "k", "--", "echo", "not run").text == "new")
    }

    @Test func aRemovalDuringAFetchPreventsStoring() throws {
        let place = try Place()
        let program = try DaemonProcess.program("larderctl")
        let call = try place.start(shell("'\(program)' del k; printf made"))
        #expect(try call.waitForExit() == .exited(0))
        #expect(call.output == "0\nmade")
        #expect(call.errors.contains("not stored: the entry was changed or purged during the command"))
        #expect(try place.larderctl("get", "k").exitCode == 1)
    }

    @Test func aCommandThatFetchesItsOwnKeyGetsAnError() throws {
        let place = try Place()
        let program = try DaemonProcess.program("larderctl")
        let call = try place.start(["--", program, "fetch", "other", "--", program, "fetch", "k", "--", "echo", "v"])
        #expect(try call.waitForExit() == .exited(6))
        #expect(call.errors.contains("k is being fetched by a parent of this process: they would wait for each other"))
        #expect(try place.larderctl("fetch", "other", "--database", "books", "--", "echo", "v").text == "v\n")
    }

    @Test func fetchRefusesInvalidOptionsBeforeItsCommandRuns() throws {
        let place = try Place()
        for (words, text) in [
            (["k"], "too few arguments: larderctl fetch KEY [OPTION…] -- COMMAND [ARGUMENT…]"),
            (["k", "--lease", "0", "--", "echo"], "--lease 0: must be a number of milliseconds, "),
            (
                ["k", "--wait", "x", "--", "echo"],
                "--wait x: must be a number of milliseconds, or one followed by us, ms, s, "
            ),
            (
                ["k", "--grace", "-1", "--", "echo"],
                "250ms, 90s, 15m or 1h, from 0 to 9000000000\n"
            ),
            (["k", "--jitter", "101", "--", "echo"], "--jitter 101: must be a number from 0 to 100"),
            (["k", "--absent", "0", "--", "echo"], "--absent 0: must be a number from 1 to 255"),
            (
                ["k", "--ttl", "0", "--", "echo"],
                "--ttl 0: must be a number of seconds, "
            ),
            (["k", "--absent", "4", "--same", "4", "--", "echo"], "--absent and --same cannot be the same exit code"),
        ] {
            let result = try place.larderctl.run(["fetch"] + words)
            #expect(result.exitCode == 2 && result.text.isEmpty)
            #expect(result.errors.contains(text), "\(words): \(result.errors)")
        }
        #expect(try place.larderctl("fetch", "k", "--wait", "0", "--", "echo", "v").text == "v\n", "no lease is left")
    }
}
