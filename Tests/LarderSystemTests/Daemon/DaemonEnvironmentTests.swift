import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the daemon in unusual process environments.
@Suite(.serialized) struct DaemonEnvironmentTests {
    /// Runs a shell script in which `$larderd` is the command that starts a daemon on a larder in `place`.
    private func start(_ script: String, in place: TemporaryDirectory) throws -> ChildProcess {
        let command = "'\(try DaemonProcess.program())' --dir '\(place.path)/larder' --socket '\(place.path)/socket'"
        return try ChildProcess("sh", ["-c", script.replacing("$larderd", with: command)])
    }

    /// Connects as soon as the daemon listens.
    private func connect(_ place: TemporaryDirectory, _ child: ChildProcess) throws -> SocketClient {
        while true {
            if let client = try? SocketClient(place.path + "/socket") { return client }
            guard kill(child.pid, 0) == 0 else { throw ChildProcess.Failure(description: "it ended: \(child.errors)") }
            sched_yield()
        }
    }

    /// Regression test: log lines were written into LOCK, and SIGTERM ended in SIGABRT.
    @Test(arguments: ["0<&-", "1>&-", "2>&-", "0<&- 1>&-", "0<&- 2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
    func theDaemonWorksWithClosedStandardDescriptors(_ closed: String) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let child = try start("exec $larderd --log-level debug \(closed)", in: place)
        let client = try connect(place, child)
        #expect(try client.call("SET k v") == "+OK\r\n")
        let lock = try #require(try? String(decoding: Files.read(place.path + "/larder/LOCK"), as: UTF8.self))
        #expect(!lock.contains(" info ") && !lock.contains(" debug "))
        #expect(lock.contains("\(child.pid)"))
        child.send(signal: SIGTERM)
        #expect(try child.waitForExit() == .exited(0))
    }

    @Test func larderctlWorksWithClosedDescriptors() throws {
        let daemon = try DaemonProcess()
        let tool = "'\(try DaemonProcess.program("larderctl"))' --socket '\(daemon.socketPath)'"
        let (end, _, _) = try ChildProcess.run("sh", ["-c", "\(tool) set k v 0<&- 2>&- >/dev/null"])
        #expect(end == .exited(0))
        #expect(try daemon.connect().call("GET k") == "$1\r\nv\r\n")
        // If the result cannot be written, the command fails.
        for command in ["get k", "set k v", "keys", "--help"] {
            let (end, _, errors) = try ChildProcess.run("sh", ["-c", "\(tool) \(command) 1>&-"])
            #expect(end == .exited(5) && !errors.isEmpty, "\(command): \(end), \(errors)")
        }
        for command in ["--help", "--version"] {
            for output in [">/dev/full", "1>&-"] {
                let program = try DaemonProcess.program()
                let (end, _, errors) = try ChildProcess.run("sh", ["-c", "'\(program)' \(command) \(output)"])
                #expect(end == .exited(1) && errors.contains("output"), "\(command) \(output): \(end), \(errors)")
            }
        }
        // A closed standard input is an error, not an empty value.
        let (refused, _, errors) = try ChildProcess.run("sh", ["-c", "\(tool) set k 0<&-"])
        #expect(refused == .exited(5) && errors.contains("standard input"), "\(refused), \(errors)")
        #expect(try daemon.connect().call("GET k") == "$1\r\nv\r\n")
        #expect(try daemon.stop() == .exited(0))
    }

    /// A default directory below `/tmp` would be unsafe, because another user may have created it first.
    @Test(.enabled(if: geteuid() == 0)) func withoutHOMEThereIsNoDefaultDirectory() throws {
        let place = try TemporaryDirectory()
        let program = place.path + "/larderd"
        _ = try ChildProcess.run("cp", [try DaemonProcess.program(), program])
        _ = try ChildProcess.run("chmod", ["755", place.path])
        let (end, _, errors) = try ChildProcess.run(
            "setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", "env", "-i", program])
        #expect(end == .exited(2) && errors.contains("use --dir"), "\(end), \(errors)")
    }

    /// Regression test: clients used all descriptors, and then commits and checkpoints failed.
    @Test("clients cannot use up the file descriptors that the larder needs")
    func clientsCannotUseTheDescriptorsOfTheLarder() throws {
        let daemon = try DaemonProcess(["--memory", "1M"], wrapper: ["prlimit", "--nofile=64:64"])
        #expect(daemon.process.errors.contains("(--max-clients): the process may open 64 descriptors"))
        let first = try daemon.connect()
        let limit = try #require(
            Int(
                try first.call("INFO clients").split(separator: "\r\n")
                    .first { $0.hasPrefix("maxclients:") }?.dropFirst("maxclients:".count) ?? ""))
        #expect((4...40).contains(limit))
        #expect(try first.call("CONFIG GET maxclients").contains("\(limit)\r\n"))
        let refused = "-ERR max number of clients reached\r\n"
        let clients = try (0..<100).map { _ in try daemon.connect() }
        for (index, client) in clients.enumerated() {
            if index < limit - 1 {
                #expect(try client.call("PING") == "+PONG\r\n")
            } else {
                #expect(String(decoding: try client.receiveToEnd(), as: UTF8.self) == refused)
            }
        }
        for round in 0..<3 {
            for name in ["0", "1", "another"] {
                #expect(try first.call("SELECT \(name)") == "+OK\r\n")
                for key in 0..<50 { #expect(try first.call("SET key-\(key) \(round)") == "+OK\r\n") }
                #expect(try first.call("SAVE") == "+OK\r\n")
            }
        }
        #expect(!daemon.process.errors.contains(" error "))
        let most = try first.call("CONFIG SET maxclients 10000")
        #expect(most.contains("is not able to handle the specified number of clients, try with \(limit)"))
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func withTooFewDescriptorsTheStartFails() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let child = try start("ulimit -n 30 && exec $larderd", in: place)
        #expect(try child.waitForExit() == .exited(1))
        #expect(
            child.errors.contains("the process may open 30 descriptors; with 0 databases and 1 event loop, "))
        #expect(child.errors.contains("raise the limit (ulimit -n)"))
    }

    /// Regression test: a daemon was killed when its terminal closed.
    @Test func sighupWithoutAConfigurationFileStopsTheDaemon() throws {
        let daemon = try DaemonProcess()
        #expect(try daemon.connect().call("SET k v") == "+OK\r\n")
        daemon.process.send(signal: SIGHUP)
        #expect(try daemon.process.waitForExit() == .exited(0))
        #expect(daemon.process.errors.contains("info stopping: SIGHUP"))
        #expect(daemon.process.errors.contains("info stopped"))
    }

    /// The daemon is started with SIGHUP ignored, as nohup does.
    @Test func sighupIsIgnoredUnderNohup() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let child = try start("trap '' HUP; exec $larderd", in: place)
        let client = try connect(place, child)
        child.send(signal: SIGHUP)
        #expect(try client.call("PING") == "+PONG\r\n")
        child.send(signal: SIGTERM)
        #expect(try child.waitForExit() == .exited(0))
        #expect(!child.errors.contains("SIGHUP"))
    }

    /// Regression test: these signals killed the daemon. Tools send them to programs that reopen a log or print their
    /// state.
    @Test(arguments: [SIGUSR1, SIGUSR2]) func sigusr1AndSIGUSR2DoNotStopTheDaemon(_ signal: Int32) throws {
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        daemon.process.send(signal: signal)
        for _ in 0..<3 { #expect(try client.call("PING") == "+PONG\r\n") }
        #expect(try daemon.stop() == .exited(0))
    }

    /// A supervisor may repeat SIGTERM while the last checkpoint is running.
    @Test(arguments: [SIGTERM, SIGHUP]) func aSecondSIGTERMDoesNotInterruptTheShutdown(_ signal: Int32) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        let daemon = try DaemonProcess(in: place, faults: faults)
        #expect(try daemon.connect().call("SET k v") == "+OK\r\n")
        faults.arm(FaultControl.Rule(.sync, .pause))
        daemon.process.send(signal: SIGTERM)
        _ = try daemon.process.waitForErrorLine(containing: "stopping: SIGTERM")
        while faults.hits() == 0 { sched_yield() }
        for _ in 0..<5 { daemon.process.send(signal: signal) }
        #expect(kill(daemon.process.pid, 0) == 0)
        faults.disarm()
        #expect(try daemon.process.waitForExit() == .exited(0))
        #expect(try FileSystem.list(daemon.larder + "/JOURNAL").isEmpty)
    }

    /// A user who presses Ctrl-C again does not want to wait.
    @Test func aSecondSIGINTStopsTheDaemonAtOnce() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        let daemon = try DaemonProcess(in: place, faults: faults)
        #expect(try daemon.connect().call("SET k v") == "+OK\r\n")
        faults.arm(FaultControl.Rule(.sync, .pause))
        daemon.process.send(signal: SIGINT)
        _ = try daemon.process.waitForErrorLine(containing: "stopping: SIGINT")
        while faults.hits() == 0 { sched_yield() }
        daemon.process.send(signal: SIGINT)
        #expect(try daemon.process.waitForExit() == .killed(signal: SIGINT))
        let next = try DaemonProcess(in: place)
        #expect(try next.connect().call("GET k") == "$1\r\nv\r\n")
        #expect(try next.stop() == .exited(0))
    }

    @Test func theSocketsDirectoryIsCreatedAndReported() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let child = try start("exec $larderd --socket '\(place.path)/a/b/socket'", in: place)
        _ = try child.waitForErrorLine(
            containing: "created the socket's directory \(place.path)/a/b, which was missing")
        _ = try child.waitForErrorLine(containing: " ready: ")
        child.send(signal: SIGTERM)
        #expect(try child.waitForExit() == .exited(0))
    }

    /// If root used another user's larder, its new files would lock that user out.
    @Test(.enabled(if: geteuid() == 0)) func rootDoesNotUseTheLarderOfAnotherUser() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let larder = place.path + "/larder"
        try FileSystem.makeDirectories(larder)
        #expect(chown(larder, 65_534, 65_534) == 0)
        for option in ["", "--purge"] {
            let child = try start("exec $larderd \(option)", in: place)
            #expect(try child.waitForExit() == .exited(1))
            #expect(child.errors.contains("belongs to the user with uid 65534"), "\(child.errors)")
            #expect(try FileSystem.list(larder).isEmpty)
        }
    }

    /// As on a volume that belongs to another user, or is mounted read-only.
    @Test(.enabled(if: geteuid() == 0)) func aLarderThatCannotBeWrittenNamesTheRemedy() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let larder = place.path + "/larder"
        try FileSystem.makeDirectories(larder)
        #expect(chmod(place.path, 0o755) == 0 && chmod(larder, 0o755) == 0)
        let stranger = try start(
            "exec setpriv --reuid=65534 --regid=65534 --clear-groups $larderd", in: place)
        #expect(try stranger.waitForExit() == .exited(1))
        #expect(
            stranger.errors.contains("uid 0, and this process has uid 65534")
                && stranger.errors.contains("chown -R 65534 \(larder)"), "\(stranger.errors)")
        let readOnly = try start(
            "exec unshare -m sh -c \"mount -t tmpfs -o ro none \(larder) && exec $larderd\"", in: place)
        #expect(try readOnly.waitForExit() == .exited(1))
        #expect(readOnly.errors.contains("read-only; mount it writable"), "\(readOnly.errors)")
    }

    /// Swift reads the command line from /proc. Without it, a program would run with its default options.
    @Test(.enabled(if: geteuid() == 0), arguments: ["larderd", "larderctl", "larderweb"])
    func withoutProcNoProgramRuns(_ program: String) throws {
        let path = FileSystem.parent(try DaemonProcess.program()) + "/" + program
        let child = try start(
            "exec unshare -m sh -c 'umount -l /proc && exec \(path) --version'",
            in: try TemporaryDirectory(inMemory: true))
        #expect(try child.waitForExit() == .exited(2))
        #expect(child.errors.contains("\(program): /proc is not mounted"), "\(child.errors)")
    }

    /// Too few threads cause an error message, not a crash, and do not fill the log.
    @Test(.enabled(if: geteuid() == 0)) func tooFewThreadsAreExplained() throws {
        let place = try TemporaryDirectory(inMemory: true)
        // Use another user, because the limit does not apply to root. No other process runs as this user.
        let child = try start(
            "exec setpriv --reuid=64321 --clear-groups prlimit --nproc=6 $larderd", in: place)
        let end = try child.waitForExit()
        #expect(end == .exited(1), "\(end)")
        #expect(child.errors.contains("threads can be started"), "\(child.errors)")
        #expect(child.errors.split(separator: "\n").count < 8, "\(child.errors.prefix(2000))")
    }
}
