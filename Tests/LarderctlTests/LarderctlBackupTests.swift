import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of backups of a daemon's larder.
@Suite struct LarderctlBackupTests {
    @Test("a backup can be made, verified and restored to a new larder")
    func aBackupCanBeRestoredToANewLarder() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let directory = try TemporaryDirectory(inMemory: true)
        let (backups, restored) = (directory.path + "/backups", directory.path + "/larder")
        #expect(try larderctl("set", "a", "1", "--tag", "t").exitCode == 0)
        #expect(try larderctl("--database", "other", "set", "b", "2").exitCode == 0)
        #expect(try larderctl("--database", "other", "set", "c", #"{"year":1}"#).exitCode == 0)
        #expect(try larderctl("--database", "other", "index", "create", "byYear", "on", "year").exitCode == 0)
        let library = "#!lua name=lib\nredis.register_function('seven', function() return 7 end)"
        #expect(try larderctl("FUNCTION", "LOAD", library).exitCode == 0)
        let made = try larderctl("backup", backups + "/")
        // Scripts use `$(larderctl backup …)`, so only the path may be printed.
        let path = backups + "/" + (try #require(try FileSystem.list(backups).first))
        #expect(made.exitCode == 0 && made.text == path + "\n", "\(made)")
        #expect(made.errors.contains(" files, ") && made.errors.contains(" are new, in "), "\(made)")
        #expect(try larderctl("set", "a", "later").exitCode == 0)
        let second = try larderctl("backup", "--json", backups)
        #expect(second.exitCode == 0 && second.text.contains(#","newBytes":"#), "\(second)")
        #expect(second.text.hasSuffix(#","warnings":[]}"# + "\n"), "\(second)")
        #expect(try FileSystem.list(backups).count == 2)
        #expect(try larderctl("stats", "larder").text.contains("backup_last_status:ok"))

        let first = backups + "/" + (try #require(try FileSystem.list(backups).first))
        let good = try larderctl("verify", first)
        #expect(good.exitCode == 0 && good.text.contains(" is undamaged: "), "\(good)")
        #expect(try larderctl("restore", first, restored).exitCode == 0)
        let other = try DaemonProcess(in: directory)
        let copy = Larderctl(socketPath: other.socketPath)
        #expect(try copy("get", "a").text == "1")
        #expect(try copy("tags", "a").text == "t\n")
        #expect(try copy("--database", "other", "get", "b").text == "2")
        #expect(try copy("--database", "other", "index").text.contains("byYear  year  "))
        #expect(try copy("--database", "other", "query", "keys", "where", "year", "=", "1").text == "KEY\nc\n")
        #expect(try copy("FCALL", "seven", "0").text == "7\n")
    }

    @Test func backupErrorsAreExplained() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let directory = try TemporaryDirectory(inMemory: true)
        let backups = directory.path + "/backups"
        for words in [["verify", backups], ["restore", backups, directory.path + "/x"]] {
            let missing = try larderctl.run(words)
            let text = "\(backups) is neither a backup nor a directory of backups"
            #expect(missing.exitCode == 2 && missing.errors.contains(text), "\(missing)")
        }
        let incomplete = try larderctl("backup")
        #expect(incomplete.exitCode == 2 && incomplete.errors.contains("DIRECTORY"), "\(incomplete)")
        let inside = try larderctl("backup", daemon.larder + "/backups")
        #expect(inside.exitCode == 4 && inside.errors.contains("must not be inside the larder"), "\(inside)")
        let relative = try larderctl("BACKUP", "relative")
        #expect(relative.exitCode == 4 && relative.errors.contains("must be an absolute path"), "\(relative)")
        try Files.write(directory.path + "/file", [])
        let file = try larderctl("backup", directory.path + "/file")
        #expect(file.exitCode == 4 && file.errors.contains(directory.path + "/file"), "\(file)")
        #expect(try larderctl("stats", "larder").text.contains("backup_last_status:err"))

        #expect(try larderctl("set", "a", "1").exitCode == 0)
        #expect(try larderctl("backup", backups).exitCode == 0)
        let backup = backups + "/" + (try #require(try FileSystem.list(backups).first))
        try Files.flip(backup + "/SEQUENCES", at: 20)
        let bad = try larderctl("verify", backup)
        #expect(bad.exitCode == 8 && bad.text.hasPrefix("SEQUENCES is damaged"), "\(bad)")
        let refused = try larderctl("restore", backup, directory.path + "/restored")
        #expect(refused.exitCode == 8 && refused.errors.contains("nothing was restored"), "\(refused)")
        #expect(!FileSystem.exists(directory.path + "/restored"))
    }

    /// If the newest backup is damaged, restore does not use an older one.
    @Test func anyDamageOfABackupIsReportedWithExitCode8() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let directory = try TemporaryDirectory(inMemory: true)
        let (backups, place) = (directory.path + "/backups", directory.path + "/restored")
        #expect(try larderctl("set", "a", "1").exitCode == 0)
        #expect(try larderctl("backup", backups).exitCode == 0)
        let backup = String(try larderctl("backup", backups).text.dropLast())
        func expectDamage(_ problem: String) throws {
            let found = try larderctl("verify", backup)
            #expect(found.exitCode == 8 && found.text.hasPrefix(problem + "\n"), "\(found)")
            for source in [backup, backups] {
                let refused = try larderctl("restore", source, place)
                #expect(refused.exitCode == 8, "\(refused)")
                #expect(refused.errors.contains("\(problem); nothing was restored"), "\(refused)")
            }
        }
        try Files.remove(backup + "/SEQUENCES")
        try expectDamage("SEQUENCES is missing")
        try FileSystem.makeDirectory(backup + "/SEQUENCES")
        try expectDamage("SEQUENCES is not a file")
        try Files.remove(backup + "/BACKUP")
        for words in [
            ["verify", backups], ["verify", backup], ["restore", backups, place], ["restore", backup, place],
        ] {
            let result = try larderctl.run(words)
            #expect(result.exitCode == 8 && result.errors.contains("its file BACKUP is missing"), "\(result)")
        }
        #expect(!FileSystem.exists(place))
        let next = try larderctl("backup", backups)
        #expect(next.exitCode == 0 && next.errors.contains("nothing was linked from \(backup)"), "\(next)")
        #expect(try larderctl("verify", backups).exitCode == 0)
    }

    /// While another process makes a backup in the same directory, larderctl changes nothing there.
    @Test func backupRefusesADirectoryThatAnotherBackupUses() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let directory = try TemporaryDirectory(inMemory: true)
        let backups = directory.path + "/backups"
        try FileSystem.makeDirectories(backups + "/.unfinished-20200101T000000Z")
        try Files.write(backups + "/.lock", Array("process 17, for the larder /else\n".utf8))
        let lock = FileSystem.openFile(backups + "/.lock", O_RDWR | O_CLOEXEC)
        try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        let refused = try larderctl("backup", backups)
        let text = "another backup is being made in \(backups) (process 17, for the larder /else); no backup was made"
        #expect(refused.exitCode == 4 && refused.errors.contains(text), "\(refused)")
        #expect(try FileSystem.list(backups) == [".lock", ".unfinished-20200101T000000Z"])
        close(lock)
        #expect(try larderctl("backup", backups).exitCode == 0)
        #expect(try FileSystem.list(backups).count == 1)
    }
}
