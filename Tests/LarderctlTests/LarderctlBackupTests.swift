import Platform
import TestSupport
import Testing

/// Backups of a daemon's larder.
@Suite struct LarderctlBackupTests {
    @Test func aLarderIsCarriedAway() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let directory = try TemporaryDirectory()
        let (backups, restored) = (directory.path + "/backups", directory.path + "/larder")
        #expect(try larderctl("set", "a", "1", "--tag", "t").exitCode == 0)
        #expect(try larderctl("--database", "other", "set", "b", "2").exitCode == 0)
        let library = "#!lua name=lib\nredis.register_function('seven', function() return 7 end)"
        #expect(try larderctl("FUNCTION", "LOAD", library).exitCode == 0)
        let made = try larderctl("backup", backups + "/")
        #expect(made.exitCode == 0 && made.text.hasPrefix(backups + "/2"), "\(made)")
        #expect(try larderctl("set", "a", "later").exitCode == 0)
        let second = try larderctl("backup", "--json", backups)
        #expect(second.text.contains(#","newBytes":"#), "\(second)")
        #expect(try FileSystem.list(backups).count == 2)
        #expect(try larderctl("stats", "larder").text.contains("backup_last_status:ok"))

        let first = backups + "/" + (try #require(try FileSystem.list(backups).first))
        let good = try larderctl("verify", first)
        #expect(good.exitCode == 0 && good.text.contains(" is good: "), "\(good)")
        #expect(try larderctl("restore", first, restored).exitCode == 0)
        let other = try DaemonProcess(in: directory)
        let copy = Larderctl(socketPath: other.socketPath)
        #expect(try copy("get", "a").text == "1")
        #expect(try copy("tags", "a").text == "t\n")
        #expect(try copy("--database", "other", "get", "b").text == "2")
        #expect(try copy("FCALL", "seven", "0").text == "7\n")
    }

    @Test func whatIsWrongIsTold() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let directory = try TemporaryDirectory()
        let backups = directory.path + "/backups"
        #expect(try larderctl("verify", backups).exitCode == 2)
        #expect(try larderctl("restore", backups, directory.path + "/x").exitCode == 2)
        #expect(try larderctl("backup").exitCode == 2)
        let inside = try larderctl("backup", daemon.larder + "/backups")
        #expect(inside.exitCode == 4 && inside.errors.contains("must not be inside the larder"), "\(inside)")
        #expect(try larderctl("BACKUP", "relative").errors.contains("must be a path from the root"))
        try Files.write(directory.path + "/file", [])
        #expect(try larderctl("backup", directory.path + "/file").exitCode == 4)
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
}
