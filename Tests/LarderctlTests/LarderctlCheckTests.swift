import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of `larderctl check`, which checks the larder of a running daemon or the files of a larder.
@Suite struct LarderctlCheckTests {
    private func flipTable(_ larder: String) throws {
        let database = larder + "/0"
        let epoch = try #require(try FileSystem.list(database).first { UInt64($0) != nil })
        let table = try #require(try Files.names(in: database + "/" + epoch, endingWith: ".ldb").first)
        try Files.flip("\(database)/\(epoch)/\(table)", at: 50)
    }

    /// Fills a larder with entries in table files: at its second start, the daemon writes LevelDB's log to a table
    /// file.
    private func filled(_ directory: TemporaryDirectory) throws {
        let daemon = try DaemonProcess(in: directory)
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        for number in 0..<20 { #expect(try larderctl("set", "k\(number)", "v", "--ttl", "600").exitCode == 0) }
        try daemon.stop()
        let second = try DaemonProcess(in: directory)
        try second.stop()
    }

    @Test func checkFindsDamageInAStoppedLarder() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        try filled(directory)
        let larder = directory.path + "/larder"
        let larderctl = Larderctl(socketPath: directory.path + "/socket")
        let before = try Files.digest(larder)
        let healthy = try larderctl("check", larder)
        #expect(
            healthy.exitCode == 0 && healthy.text.hasPrefix("no problems: 1 database, 20 entries"), "\(healthy)")
        #expect(try Files.digest(larder) == before)
        try flipTable(larder)
        let damaged = try Files.digest(larder)
        let found = try larderctl("check", larder)
        #expect(found.exitCode == 8 && found.text.hasPrefix("database '0': "), "\(found)")
        #expect(found.text.split(separator: "\n").count == 1)
        let json = try larderctl("--json", "check", larder)
        #expect(
            json.exitCode == 8 && json.text.hasPrefix(#"{"problems":[{"kind":"damage","place":"database '0'""#),
            "\(json)")
        #expect(try Files.digest(larder) == damaged)
        let repaired = try larderctl("check", "--repair", larder)
        #expect(
            repaired.exitCode == 9 && repaired.text.hasSuffix("repaired: no problems left\n"), "\(repaired)")
        #expect(try larderctl("check", larder).exitCode == 0)
        #expect(try larderctl("check", larder, "--database", "nobody").exitCode == 4)
        #expect(try larderctl("check", directory.path + "/nowhere").exitCode == 2)
    }

    /// `larderctl check` and `larderd --check` exit with the same code.
    @Test func checkOfAnUnreadableLarderIsIncomplete() throws {
        let place = try TemporaryDirectory(inMemory: true)
        try filled(place)
        let faults = try FaultControl(in: place)
        faults.arm(.failing(.open, EACCES, path: "LOCK"))
        let larder = place.path + "/larder"
        let result = try Larderctl(socketPath: nil, faults: faults)("check", larder)
        let direct = try ChildProcess(
            try DaemonProcess.program(), ["--check", "--dir", larder], environment: try faults.environment())
        #expect(try result.exitCode == 10 && direct.waitForExit() == .exited(10), "\(result) \(direct.errors)")
        for errors in [result.errors, direct.errors] { #expect(errors.contains(SystemErrorText.of(EACCES))) }
    }

    @Test("a check of a daemon on a full disk reports what to do")
    func checkOnAFullDiskReportsWhatToDo() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        let daemon = try DaemonProcess(in: place, faults: faults)
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        #expect(try larderctl("set", "k", "v").exitCode == 0)
        faults.arm(.failing(.write, ENOSPC, path: ".image-"))
        let full = try larderctl("check")
        #expect(full.exitCode == 10 && full.errors.contains("larderctl: UNCHECKED the larder "), "\(full)")
        #expect(
            full.errors.contains("remove other files, or stop the daemon: without a daemon, larderctl check"),
            "\(full)")
        faults.disarm()
        #expect(try larderctl("check").exitCode == 0)
    }

    @Test func checkReadsTheOriginsFile() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        try filled(directory)
        let larder = directory.path + "/larder"
        _ = try directory.makeFile("larder/ORIGINS", Array("larder-origins 1\n0 unix:///r THROUGH\ncrc64 0\n".utf8))
        let larderctl = Larderctl(socketPath: directory.path + "/socket")
        let files = try larderctl("check", larder)
        #expect(files.exitCode == 8 && files.text.hasPrefix("ORIGINS: its checksum"), "\(files)")
        let daemon = try DaemonProcess(in: directory)
        let asked = try Larderctl(socketPath: daemon.socketPath)("check")
        #expect(asked.exitCode == 8 && asked.text.hasPrefix("ORIGINS: its checksum"), "\(asked)")
        let doctor = try Larderctl(socketPath: daemon.socketPath)("doctor")
        #expect(doctor.exitCode == 8 && doctor.text.contains("origins-unusable: 1 database"), "\(doctor)")
    }

    @Test func checkReportsAMissingLedger() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let larder = directory.path + "/larder"
        let larderctl = Larderctl(socketPath: directory.path + "/socket")
        let program = try DaemonProcess.program()
        let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
        let daemon = try DaemonProcess(in: directory)
        #expect(try larderctl("FUNCTION", "LOAD", library).exitCode == 0)
        try daemon.stop()
        let ledger = try ChildProcess.run(program, ["--check=LEDGER", "--dir", larder])
        #expect(ledger.end == .exited(0), "\(ledger)")
        try FileSystem.removeTree(larder + "/LEDGER")
        for options in [[], ["--database", "LEDGER"]] {
            let found = try larderctl.run(["check", larder] + options)
            #expect(found.exitCode == 8 && found.text.hasPrefix("the ledger: its files are missing"), "\(found)")
        }
        let second = try DaemonProcess(in: directory)
        let doctor = try larderctl("doctor")
        #expect(doctor.exitCode == 8 && doctor.text.contains("1 loss of purges of tags, functions"), "\(doctor)")
        #expect(try larderctl("check").exitCode == 0)
        try second.stop()
        // A file written by an earlier version.
        _ = try directory.makeFile("larder/FUNCTIONS", [1, 2, 3])
        let file = try larderctl("check", larder)
        #expect(file.exitCode == 8 && file.text.hasPrefix("FUNCTIONS: its checksum"), "\(file)")
        let third = try DaemonProcess(in: directory)
        let again = try larderctl("doctor")
        #expect(again.text.contains("1 loss of purges of tags, functions"), "\(again)")
        try third.stop()
    }

    @Test func checkFindsDamageThroughARunningDaemon() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        try filled(directory)
        try flipTable(directory.path + "/larder")
        let daemon = try DaemonProcess(in: directory)
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let found = try larderctl("check")
        #expect(found.exitCode == 8 && found.text.contains(".ldb: "), "\(found)")
        // If no daemon is at the default socket, the check finds the daemon that has the directory open.
        let elsewhere = Larderctl(socketPath: directory.path + "/nobody")
        #expect(try elsewhere("check", daemon.larder).exitCode == 8)
        #expect(try elsewhere("check", "--json", daemon.larder).text.contains(#""kind":"damage""#))
        #expect(try elsewhere("check", "--repair", daemon.larder).exitCode == 9)
        #expect(try larderctl("databases").text.contains("  STATE  DAMAGE\n0 "))
        #expect(try larderctl("databases", "--json").text.contains(#/,"damage":"\d+ entries were kept; /#))
        #expect(try larderctl("check").exitCode == 0)
        #expect(try larderctl("stats", "larder").text.contains("check_last_status:ok"))
        #expect(try larderctl("check", "--database", "nobody").exitCode == 4)
        // `larderd --check` refuses, because the daemon has the larder open.
        let program = try DaemonProcess.program()
        let held = try ChildProcess.run(program, ["--check", "--dir", daemon.larder])
        #expect(held.end == .exited(3) && held.errors.contains("use larderctl check"), "\(held)")
        // If no daemon replies on the socket given by an option, the check fails.
        #expect(try elsewhere("check", "--socket", directory.path + "/nobody").exitCode == 3)
    }

    /// A wrong path in a nightly job must not look like a successful check.
    @Test func checkingAPathThatIsNotALarderExitsWithTwo() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        try filled(directory)
        let larderctl = Larderctl(socketPath: directory.path + "/socket")
        for place in [directory.path, directory.path + "/larder/0", "/etc"] {
            let result = try larderctl("check", place)
            #expect(result.exitCode == 2 && result.text.isEmpty, "\(result)")
            #expect(result.errors.contains("\(place) is not a larder: "))
        }
        let missing = directory.path + "/missing"
        #expect(try larderctl("check", missing).exitCode == 2)
        #expect(try ChildProcess.run(try DaemonProcess.program(), ["--check", "--dir", missing]).end == .exited(2))
    }

    @Test func aLarderOfANewerVersionIsNotReportedAsDamaged() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        try filled(directory)
        let larder = directory.path + "/larder"
        let text = String(decoding: try Files.read(larder + "/0/POINTER"), as: UTF8.self)
        try Files.write(
            larder + "/0/POINTER", Array(text.replacing("larder-database 1", with: "larder-database 9").utf8))
        let larderctl = Larderctl(socketPath: directory.path + "/socket")
        let found = try larderctl("check", "--repair", larder)
        #expect(found.exitCode == 10 && found.text.contains("a newer Larder wrote it (version 9"), "\(found)")
        #expect(try ChildProcess.run(try DaemonProcess.program(), ["--repair"]).end == .exited(2))
    }
}
