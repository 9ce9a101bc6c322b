import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the verbs that show a running daemon.
@Suite struct LarderctlWatchTests {
    private func daemon() throws -> (DaemonProcess, Larderctl) {
        let daemon = try DaemonProcess(["--max-disk", "1G"])
        return (daemon, Larderctl(socketPath: daemon.socketPath))
    }

    @Test("stats --watch prints a line per interval") func statsWithWatchPrintsALinePerInterval() throws {
        let (daemon, larderctl) = try daemon()
        let child = try ChildProcess(
            try DaemonProcess.program("larderctl"), ["stats", "--watch=0.1"], environment: larderctl.environment)
        try child.waitForOutput { $0.split(separator: "\n").count > 3 }
        child.send(signal: SIGINT)
        #expect(try child.waitForExit() == .killed(signal: SIGINT))
        let lines = child.output.split(separator: "\n")
        #expect(lines[0].contains("OPS/S") && lines[1].contains(" B "), "\(lines)")
        #expect(lines.dropFirst().allSatisfy { $0.count == lines[0].count })
        let json = try ChildProcess(
            try DaemonProcess.program("larderctl"), ["--json", "stats", "--watch=0.1"],
            environment: larderctl.environment)
        try json.waitForOutput { $0.contains("\n") }
        #expect(json.output.hasPrefix(#"{"time":"#) && json.output.contains(#""hitShare":null"#), "\(json.output)")
        // If the daemon is killed, larderctl exits.
        daemon.kill()
        #expect(try json.waitForExit() == .exited(3))
        #expect(try larderctl("stats", "--watch=x").exitCode == 2)
        #expect(try larderctl("stats", "--watch", "memory").exitCode == 2)
    }

    @Test func monitorPrintsCommandsWhenTheyRun() throws {
        let (daemon, larderctl) = try daemon()
        let child = try ChildProcess(
            try DaemonProcess.program("larderctl"), ["--json", "monitor"], environment: larderctl.environment)
        while try !larderctl("CLIENT", "LIST").text.contains("cmd=monitor") { nap() }
        #expect(try larderctl("set", "a b", "1").exitCode == 0)
        try child.waitForOutput { $0.contains(#""words":["SET","a b","1""#) }
        daemon.kill()
        #expect(try child.waitForExit() == .exited(3))
        #expect(try larderctl("MONITOR").errors.contains("use larderctl monitor"))
    }

    @Test func latencyPrintsCommandTimesAndSlowCommands() throws {
        let (daemon, larderctl) = try daemon()
        #expect(try larderctl("CONFIG", "SET", "slowlog-log-slower-than", "0").exitCode == 0)
        #expect(try larderctl("set", "a", "1").exitCode == 0)
        let shown = try larderctl("latency").text
        #expect(shown.hasPrefix("COMMAND") && shown.contains("\nset ") && shown.contains("\nslow commands"), "\(shown)")
        #expect(shown.contains(" SET a … ("), "\(shown)")
        #expect(shown.contains(" UTC  ") && !shown.contains(".000 UTC"), "\(shown)")
        let one = try larderctl("latency", "--slow=0", "config").text.split(separator: "\n")
        #expect(one.count == 2 && one[1].hasPrefix("config|set "), "\(one)")
        let json = try larderctl("--json", "latency", "--sort", "name").text
        #expect(json.hasPrefix(#"{"commands":[{"name":"#) && json.contains(#","events":[],"unseen":[]}"#), "\(json)")
        #expect(try larderctl("latency", "--sort", "size").exitCode == 2)
        withExtendedLifetime(daemon) {}
    }

    /// A database that the system does not let the daemon open is not damaged.
    @Test func doctorReportsWhyADatabaseCannotBeOpened() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        let first = try DaemonProcess(in: place)
        let larderctl = Larderctl(socketPath: first.socketPath)
        #expect(try larderctl("set", "k", "v").exitCode == 0)
        try first.stop()
        faults.arm(.failing(.open, EACCES, path: "0/POINTER"))
        let daemon = try DaemonProcess(in: place, faults: faults)
        #expect(try larderctl("get", "k").errors.contains(SystemErrorText.of(EACCES)))
        let found = try larderctl("doctor")
        let finding = "writes-refused: writes are failing: \(SystemErrorText.of(EACCES)); allow the daemon's user "
        #expect(found.text.contains(finding), "\(found)")
        #expect(!found.text.contains("database-unusable"), "\(found)")
        faults.disarm()
        #expect(try larderctl("get", "k").text == "v")
        #expect(try !larderctl("doctor").text.contains("writes-refused"))
        withExtendedLifetime(daemon) {}
    }

    @Test func doctorHasNoFindingsForAHealthyDaemon() throws {
        let (daemon, larderctl) = try daemon()
        #expect(try larderctl("set", "a", "1").exitCode == 0)
        let healthy = try larderctl("doctor")
        #expect(healthy.exitCode == 0 && healthy.text.hasPrefix("no findings ("), "\(healthy)")
        #expect(try larderctl("--json", "doctor").text == #"{"findings":[],"unseen":[]}"# + "\n")
        for mode: mode_t in [0o777, 0o720] {
            chmod(daemon.larder, mode)
            let open = try larderctl("doctor")
            #expect(open.exitCode == 8 && open.text.hasPrefix("larder-writable: "), "\(open)")
        }
        chmod(daemon.larder, 0o700)
        #expect(try larderctl("CONFIG", "SET", "max-disk", "none").exitCode == 0)
        let found = try larderctl("doctor")
        #expect(found.exitCode == 8 && found.text.hasPrefix("no-disk-limit: the larder has "), "\(found)")
        #expect(try larderctl("--json", "doctor").text.contains(#""rule":"no-disk-limit","weight":"advice""#))
        daemon.kill()
        #expect(try larderctl("doctor").exitCode == 3)
    }

    /// A result without findings must name the rules that could not be checked.
    @Test func doctorNamesTheRulesThatCouldNotBeChecked() throws {
        let daemon = try DaemonProcess(["--max-disk", "1G", "--disable-commands", "SLOWLOG,CLIENT|LIST,LATENCY"])
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let looked = try larderctl("doctor")
        #expect(looked.exitCode == 10, "\(looked)")
        #expect(
            looked.text.contains("no findings (") && looked.text.contains(" rules checked, 3 could not be checked)\n"))
        for rule in ["slow-commands", "client-does-not-read", "monitor-on"] {
            #expect(looked.text.contains("\n\(rule): not checked: NOPERM"), "\(looked.text)")
        }
        let json = try larderctl("--json", "doctor").text
        #expect(json.contains(#"{"findings":[],"unseen":[{"rule":"slow-commands","reason":"NOPERM"#), "\(json)")
        #expect(try larderctl("CONFIG", "SET", "max-disk", "none").exitCode == 0)
        #expect(try larderctl("doctor").exitCode == 8)
        let shown = try larderctl("latency").text
        #expect(shown.contains("slow commands: not shown: NOPERM"), "\(shown)")
        #expect(shown.contains("events of LATENCY: not shown: NOPERM"), "\(shown)")
        #expect(try !larderctl("latency", "--slow", "0").text.contains("slow commands:"))
        #expect(try larderctl("--json", "latency").text.contains(#""unseen":[{"what":"slow","reason":"NOPERM"#))
    }

    @Test func topNeedsATerminal() throws {
        let (daemon, larderctl) = try daemon()
        let refused = try larderctl("top")
        #expect(refused.exitCode == 2 && refused.errors.contains("needs a terminal"), "\(refused)")
        let once = try larderctl("--json", "top", "--interval", "0.1")
        #expect(once.exitCode == 0 && once.text.hasPrefix(#"{"operationsPerSecond":"#), "\(once)")
        withExtendedLifetime(daemon) {}
    }

    #if os(Linux)
        private func top(
            _ larderctl: Larderctl, _ width: Int, _ height: Int, kind: String = "TERM=xterm"
        ) throws -> TerminalSession {
            try TerminalSession(
                [try DaemonProcess.program("larderctl"), "--timeout", "0", "top", "--interval", "0.1"], width: width,
                height: height, environment: larderctl.environment + [kind, "PATH=/usr/bin:/bin"])
        }

        @Test(arguments: ["TERM=dumb", "TERM=", "NOTERM=1"]) func topNeedsATerminalWithACursor(_ kind: String) throws {
            let (daemon, larderctl) = try daemon()
            let session = try top(larderctl, 80, 24, kind: kind)
            try session.wait(for: "needs a terminal with a cursor")
            #expect(try session.waitForEnd() == .exited(2))
            withExtendedLifetime(daemon) {}
        }

        /// If the daemon runs but does not reply, the screen reports that, and keys and signals work at once.
        @Test func topDoesNotWaitForAFrozenDaemon() throws {
            let (daemon, larderctl) = try daemon()
            defer { daemon.process.send(signal: SIGCONT) }
            for (keys, signal) in [("q", 0), ("\u{3}", 0), ("", SIGTERM)] {
                let session = try top(larderctl, 80, 24)
                try session.wait(for: "operations ")
                daemon.process.send(signal: SIGSTOP)
                try session.wait(for: "the daemon has not replied for ")
                if keys.isEmpty { session.send(signal) } else { try session.type(Array(keys.utf8)) }
                try session.wait(for: Self.left)
                let end: ProcessEnd = keys == "q" ? .exited(0) : .killed(signal: keys.isEmpty ? SIGTERM : SIGINT)
                #expect(try session.waitForEnd() == end)
                #expect(!session.isRaw)
                daemon.process.send(signal: SIGCONT)
            }
            // The display continues after the daemon continues.
            let session = try top(larderctl, 80, 24)
            try session.wait(for: "operations ")
            daemon.process.send(signal: SIGSTOP)
            try session.wait(for: "the daemon has not replied for ")
            daemon.process.send(signal: SIGCONT)
            try session.wait(for: "operations ")
            try session.type(Array("q".utf8))
            #expect(try session.waitForEnd() == .exited(0))
        }

        private static let entered = "\u{1B}[?1049h"
        private static let left = "\u{1B}[?1049l"

        @Test func topFillsAndRestoresTheScreen() throws {
            let (daemon, larderctl) = try daemon()
            for (width, height) in [(80, 24), (40, 10), (200, 60)] {
                let session = try top(larderctl, width, height)
                try session.wait(for: Self.entered)
                try session.wait(for: "operations ")
                try session.wait(for: "q quit")
                #expect(session.isRaw)
                let frame = try session.wait(for: "q quit")
                #expect(
                    frame.split(separator: "\r\n", omittingEmptySubsequences: false).count == height,
                    "\(frame.debugDescription)")
                try session.type(Array("d".utf8))
                try session.wait(for: "NAME")
                try session.type(Array("q".utf8))
                try session.wait(for: Self.left)
                #expect(try session.waitForEnd() == .exited(0))
                #expect(!session.isRaw)
            }
            withExtendedLifetime(daemon) {}
        }

        @Test func topAdaptsToTheSizeOfTheTerminal() throws {
            let (daemon, larderctl) = try daemon()
            let session = try top(larderctl, 80, 24)
            try session.wait(for: "operations ")
            session.resize(200, 12)
            try session.wait(for: "n name" + String(repeating: " ", count: 100))
            try session.type([3])
            try session.wait(for: Self.left)
            #expect(try session.waitForEnd() == .killed(signal: SIGINT))
            #expect(!session.isRaw)
            withExtendedLifetime(daemon) {}
        }

        @Test func topRestoresTheScreenAfterATerminatingSignal() throws {
            let (daemon, larderctl) = try daemon()
            for signal in [SIGTERM, SIGHUP, SIGQUIT] {
                let session = try top(larderctl, 80, 24)
                try session.wait(for: "operations ")
                session.send(signal)
                try session.wait(for: Self.left)
                #expect(try session.waitForEnd() == .killed(signal: signal))
                #expect(!session.isRaw)
            }
            withExtendedLifetime(daemon) {}
        }

        @Test func topCanBeSuspendedAndResumed() throws {
            let (daemon, larderctl) = try daemon()
            let session = try top(larderctl, 80, 24)
            try session.wait(for: "operations ")
            // Suspend the program with Ctrl-Z.
            try session.type([0x1A])
            try session.wait(for: Self.left)
            while !session.isStopped { nap() }
            #expect(!session.isRaw)
            session.send(SIGCONT)
            try session.wait(for: Self.entered)
            try session.wait(for: "operations ")
            #expect(session.isRaw)
            // The daemon is killed, and top retries.
            daemon.process.send(signal: SIGSTOP)
            daemon.kill()
            try session.wait(for: "trying again: ")
            try session.type(Array("q".utf8))
            #expect(try session.waitForEnd() == .exited(0))
            #expect(!session.isRaw)
        }
    #endif
}
