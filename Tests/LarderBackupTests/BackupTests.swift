import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderBackup

/// Tests of backups of directories: which files are linked and copied, which problems are noticed, and what remains
/// after failures.
@Suite struct BackupTests {
    private let parent: TemporaryDirectory
    private var image: String { parent.path + "/image" }
    private var backups: String { parent.path + "/backups" }

    init() throws {
        parent = try TemporaryDirectory(inMemory: true)
        try FileSystem.makeDirectories(image + "/books/17")
        try Files.write(image + "/SEQUENCES", Array("sequences".utf8))
        try Files.write(image + "/books/17/000005.ldb", [UInt8](repeating: 7, count: 3_000_000))
        try Files.write(image + "/books/17/000006.log", Array("log".utf8))
        try Files.write(image + "/books/17/empty", [])
    }

    private func inode(_ path: String) -> ino_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_ino : 0
    }

    @Test func aBackupIsRestored() throws {
        let result = try BackupWriter.write(image: image, to: backups, time: 1_700_000_000)
        #expect(result.path == backups + "/20231114T221320Z")
        #expect(result.files == 4 && result.bytes == 3_000_012 && result.newBytes == 3_000_012)
        let reader = try BackupReader(backups)
        #expect(try reader.verify() == [])
        let place = parent.path + "/restored"
        let steps = Recorder<Int>()
        try reader.restore(to: place) { done, _ in steps.add(done) }
        #expect(steps.all.last == 3_000_012 && steps.all.sorted() == steps.all)
        #expect(try BackupWriter.files(below: place) == BackupWriter.files(below: image))
        for name in try BackupWriter.files(below: image) {
            #expect(try Files.read(place + "/" + name) == Files.read(image + "/" + name), "\(name)")
            #expect(inode(place + "/" + name) != inode(result.path + "/" + name), "a larder does not share files")
        }
    }

    /// The next backup links the tables of the previous one, and copies all other files. Removing the previous backup
    /// does not affect the next one.
    @Test func theNextBackupReusesTablesOfThePreviousOne() throws {
        let first = try BackupWriter.write(image: image, to: backups, time: 1_700_000_000)
        try Files.write(image + "/books/17/000006.log", Array("longer log".utf8))
        try Files.write(image + "/books/17/000009.ldb", [1, 2, 3])
        let second = try BackupWriter.write(image: image, to: backups, time: 1_700_000_000)
        #expect(second.path == backups + "/20231114T221320Z-002")
        #expect(second.newBytes == 22)
        let table = "/books/17/000005.ldb"
        #expect(inode(first.path + table) == inode(second.path + table))
        #expect(inode(first.path + "/SEQUENCES") != inode(second.path + "/SEQUENCES"))
        #expect(try Files.read(first.path + "/books/17/000006.log") == Array("log".utf8))
        try Files.remove(first.path)
        #expect(try BackupReader(backups).verify() == [])
        // A clock that was set back does not make an older backup the newest.
        let third = try BackupWriter.write(image: image, to: backups, time: 1_600_000_000)
        #expect(try BackupDirectory.backup(at: backups) == third.path)
    }

    /// A table is copied if the previous backup has a table of the same name, but of another length.
    @Test func aTableWhoseLengthChangedIsCopied() throws {
        _ = try BackupWriter.write(image: image, to: backups, time: 1)
        try Files.remove(image + "/books/17/000005.ldb")
        try Files.write(image + "/books/17/000005.ldb", [1])
        #expect(try BackupWriter.write(image: image, to: backups, time: 2).bytes == 13)
        #expect(try BackupReader(backups).verify() == [])
    }

    @Test(arguments: ["SEQUENCES", "books/17/000005.ldb", "books/17/000006.log", BackupList.fileName])
    func aChangedOrMissingFileOfABackupIsReported(name: String) throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        let path = backup + "/" + name
        // The file is removed and written again: a change in place would also change the larder's table, which is a
        // hard link.
        let bytes = try Files.read(path)
        let size = bytes.count
        for offset in [0, size / 2, size - 1] {
            var changed = bytes
            changed[offset] ^= 1
            try Files.remove(path)
            try Files.write(path, changed)
            expectDamage(backup, name)
        }
        try Files.remove(path)
        try Files.write(path, Array(bytes.dropLast()))
        expectDamage(backup, name)
        try Files.remove(path)
        if name != BackupList.fileName { expectDamage(backup, name) }
    }

    private func expectDamage(_ backup: String, _ name: String) {
        do {
            let problems = try BackupReader(backup).verify()
            #expect(problems.count == 1 && problems[0].contains(name), "\(problems)")
            let place = parent.path + "/restored"
            #expect(throws: BackupError.self) { try BackupReader(backup).restore(to: place) }
            #expect(!FileSystem.exists(place))
        } catch {
            #expect(name == BackupList.fileName, "\(error)")
        }
    }

    @Test func foreignFilesInABackupAreReported() throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        try Files.write(backup + "/books/more", [])
        try FileSystem.makeDirectory(backup + "/empty")
        #expect(
            try BackupReader(backup).verify()
                == ["books/more does not belong to the backup", "empty/ does not belong to the backup"])
    }

    /// A backup list that names a file outside the backup is refused.
    @Test(arguments: ["../secret", "/etc/passwd", "books/../../x", "", "books//x", "."])
    func fileNamesOutsideTheBackupAreRefused(name: String) throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        let body = "larder-backup 1\nfile 00000000 0 \(name)\n"
        try Files.write(
            backup + "/" + BackupList.fileName, Array((body + "crc32c \(FileDigest(of: body).text)\n").utf8))
        #expect(throws: BackupError.self) { try BackupReader(backup) }
    }

    @Test func aBackupInANewerFormatIsRefused() throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        let body = "larder-backup 2\n"
        try Files.write(
            backup + "/" + BackupList.fileName, Array((body + "crc32c \(FileDigest(of: body).text)\n").utf8))
        let error = #expect(throws: BackupError.self) { try BackupReader(backup) }
        guard case .newerFormat = error else { return #expect(Bool(false), "\(String(describing: error))") }
    }

    /// An incomplete backup is not used for a restore, and the next backup removes it.
    @Test func anUnfinishedBackupIsNotRestoredAndIsRemoved() throws {
        try FileSystem.makeDirectories(backups + "/.unfinished-20231114T221320Z/books")
        try FileSystem.makeDirectories(backups + "/20231114T221320Z")
        #expect(throws: BackupError.self) { try BackupReader(backups) }
        _ = try BackupWriter.write(image: image, to: backups, time: 1_800_000_000)
        #expect(try FileSystem.list(backups) == ["20231114T221320Z", "20270115T080000Z"])
    }

    @Test func aFailedBackupLeavesNoFiles() throws {
        // Replaces a file by a dangling symbolic link, which cannot be read.
        try Files.remove(image + "/books/17/000006.log")
        guard symlink("nowhere", image + "/books/17/000006.log") == 0 else { return }
        let error = #expect(throws: BackupError.self) {
            try BackupWriter.write(image: image, to: backups, time: 1)
        }
        #expect(error?.description.contains("no backup was made") == true)
        #expect(try FileSystem.list(backups) == [])
    }

    @Test func aLarderIsNotRestoredOverAnother() throws {
        _ = try BackupWriter.write(image: image, to: backups, time: 1)
        let place = parent.path + "/restored"
        try FileSystem.makeDirectory(place)
        try BackupReader(backups).restore(to: place)
        let error = #expect(throws: BackupError.self) { try BackupReader(backups).restore(to: place) }
        #expect(error?.description.contains("is not empty") == true)
    }

    /// Changes one file as a failing disk would, without changing its attributes or its other hard links.
    private func replace(_ path: String, _ bytes: [UInt8]) throws {
        try Files.remove(path)
        try Files.write(path, bytes)
    }

    /// Another larder that was restored from the same backup may have tables with the same names and lengths, but other
    /// contents.
    @Test func tablesOfAnotherLarderAreNotReused() throws {
        let first = try BackupWriter.write(image: image, to: backups, time: 1)
        let bytes = [UInt8](repeating: 8, count: 3_000_000)
        try replace(image + "/books/17/000005.ldb", bytes)
        let second = try BackupWriter.write(image: image, to: backups, time: 2)
        #expect(try Files.read(second.path + "/books/17/000005.ldb") == bytes)
        #expect(try Files.read(first.path + "/books/17/000005.ldb") != bytes)
        #expect(second.newBytes == second.bytes && second.warnings.count == 1)
        #expect(second.warnings.first?.contains("and the larder have different tables with the same names (1)") == true)
        #expect(try BackupReader(first.path).verify() == [] && BackupReader(second.path).verify() == [])
        #expect(try BackupWriter.write(image: image, to: backups, time: 3).warnings == [])
    }

    enum Harm: CaseIterable { case changed, shorter, longer, missing, link, directory, pipe }

    private func harm(_ path: String, _ harm: Harm) throws {
        var bytes = try Files.read(path)
        try Files.remove(path)
        switch harm {
        case .changed:
            bytes[bytes.count / 2] ^= 1
            try Files.write(path, bytes)
        case .shorter: try Files.write(path, Array(bytes.dropLast()))
        case .longer: try Files.write(path, bytes + [1])
        case .missing: break
        case .link:
            try Files.write(parent.path + "/moved", bytes)
            try #require(symlink(parent.path + "/moved", path) == 0)
        case .directory: try FileSystem.makeDirectory(path)
        case .pipe: try #require(mkfifo(path, 0o600) == 0)
        }
    }

    /// A damaged table of a backup is not linked into the next backup, which copies the table from the larder instead.
    @Test(arguments: Harm.allCases) func damagedTablesAreNotReused(harm: Harm) throws {
        let first = try BackupWriter.write(image: image, to: backups, time: 1)
        let table = "/books/17/000005.ldb"
        let bytes = try Files.read(image + table)
        try self.harm(first.path + table, harm)
        let second = try BackupWriter.write(image: image, to: backups, time: 2)
        #expect(second.warnings.count == 1 && second.warnings[0].hasPrefix(first.path + table), "\(second.warnings)")
        #expect(second.warnings[0].hasSuffix("; it was copied from the larder again"))
        #expect(try Files.read(second.path + table) == bytes)
        #expect(try BackupReader(second.path).verify() == [])
        // An empty directory that does not belong to the backup is reported in addition.
        #expect(try BackupReader(first.path).verify().count == (harm == .directory ? 2 : 1))
        #expect(try BackupWriter.write(image: image, to: backups, time: 3).warnings == [])
    }

    /// If a hard-linked table has changed both in the larder and in the previous backup, the larder is damaged. The
    /// table is not one of another larder.
    @Test(arguments: [Harm.changed, .shorter]) func aBackupOfADamagedTableFails(harm: Harm) throws {
        let first = try BackupWriter.write(image: image, to: backups, time: 1)
        let table = "/books/17/000005.ldb"
        try #require(inode(first.path + table) == inode(image + table))
        if harm == .changed {
            try Files.flip(image + table, at: 1_000_000)
        } else {
            try Files.truncate(image + table, to: 2_999_999)
        }
        let error = #expect(throws: BackupError.self) { try BackupWriter.write(image: image, to: backups, time: 2) }
        #expect(error?.description.hasPrefix("the larder's table books/17/000005.ldb is damaged") == true)
        #expect(error?.description.hasSuffix("no backup was made") == true)
        #expect(try FileSystem.list(backups).count == 1)
    }

    /// A previous backup with a damaged list is reported; an older backup is used instead.
    @Test func aDamagedListOfThePreviousBackupIsReported() throws {
        let first = try BackupWriter.write(image: image, to: backups, time: 1)
        let second = try BackupWriter.write(image: image, to: backups, time: 2)
        try Files.flip(second.path + "/" + BackupList.fileName, at: 30)
        let third = try BackupWriter.write(image: image, to: backups, time: 3)
        #expect(third.warnings.count == 1 && third.warnings[0].hasSuffix("nothing was linked from \(second.path)"))
        #expect(third.newBytes == 12 && inode(third.path + "/books/17/000005.ldb") != 0)
        #expect(try BackupReader(first.path).verify() == [] && BackupReader(third.path).verify() == [])
    }

    /// A concurrent second backup into the same directory fails and does not affect the first.
    @Test func aConcurrentBackupIntoTheSameDirectoryFails() throws {
        let errors = Recorder<String>()
        let result = try BackupWriter.write(image: image, to: backups, time: 1) { [image, backups] _, _ in
            do {
                _ = try BackupWriter.write(image: image, to: backups, time: 1)
            } catch {
                errors.add("\(error)")
            }
        }
        let expected =
            "another backup is being made in \(backups) (process \(getpid()), for the larder \(parent.path)); "
            + "no backup was made, try again later"
        #expect(errors.all == Array(repeating: expected, count: 4))
        #expect(try FileSystem.list(backups) == ["19700101T000001Z"])
        #expect(try BackupReader(result.path).verify() == [])
    }

    /// A lock file left by a killed daemon does not prevent a backup. If a directory with the backup's name exists, the
    /// backup gets another name.
    @Test func leftoverFilesDoNotPreventABackup() throws {
        try FileSystem.makeDirectories(backups + "/19700101T000001Z")
        try Files.write(backups + "/19700101T000001Z/mine", [])
        try Files.write(backups + "/.lock", Array("process 1".utf8))
        let made = try BackupWriter.write(image: image, to: backups, time: 1)
        #expect(try FileSystem.list(backups) == ["19700101T000001Z", "19700101T000001Z-002"])
        #expect(
            try BackupReader(made.path).verify() == [] && FileSystem.list(backups + "/19700101T000001Z") == ["mine"])
    }

    /// If the list of the newest backup is missing, a restore reports that instead of silently using an older backup.
    @Test func aRestoreDoesNotSkipADamagedNewestBackup() throws {
        let first = try BackupWriter.write(image: image, to: backups, time: 1)
        let second = try BackupWriter.write(image: image, to: backups, time: 2)
        try Files.remove(second.path + "/" + BackupList.fileName)
        let problem = "\(second.path) is damaged: its file BACKUP is missing"
        #expect(throws: BackupError.damaged("\(problem); to use the previous one, specify \(first.path)")) {
            try BackupReader(backups)
        }
        #expect(throws: BackupError.damaged(problem)) { try BackupReader(second.path) }
        #expect(throws: BackupError.self) { try BackupReader(parent.path) }
        try Files.remove(first.path)
        #expect(throws: BackupError.damaged(problem)) { try BackupReader(backups) }
        let third = try BackupWriter.write(image: image, to: backups, time: 3)
        #expect(third.warnings == ["\(problem); nothing was linked from \(second.path)"])
    }

    @Test(arguments: [Harm.link, .directory, .pipe]) func aBackupListThatIsNotAFileIsDamage(harm: Harm) throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        try self.harm(backup + "/" + BackupList.fileName, harm)
        let error = #expect(throws: BackupError.self) { try BackupReader(backups) }
        guard case .damaged(let text) = error else { return #expect(Bool(false), "\(String(describing: error))") }
        #expect(text.contains("BACKUP is not a file"))
    }

    @Test(arguments: Harm.allCases) func damagedFilesAreNotRestored(harm: Harm) throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        try self.harm(backup + "/books/17/000006.log", harm)
        let place = parent.path + "/restored"
        let error = #expect(throws: BackupError.self) { try BackupReader(backup).restore(to: place) }
        guard case .damaged(let text) = error else { return #expect(Bool(false), "\(String(describing: error))") }
        #expect(text.hasPrefix(backup + "/books/17/000006.log ") && text.hasSuffix("; nothing was restored"))
        #expect(try FileSystem.list(parent.path).filter { $0.hasPrefix(".") || $0 == "restored" } == [])
        #expect(try BackupReader(backup).verify().count == (harm == .directory ? 2 : 1))
    }

    /// A restore checks its destination before it copies anything.
    @Test func aRestoreRefusesAnUnusableDestinationBeforeCopying() throws {
        _ = try BackupWriter.write(image: image, to: backups, time: 1)
        let path = parent.path
        try FileSystem.makeDirectory(path + "/empty")
        try Files.write(path + "/file", [])
        try #require(symlink(path + "/empty", path + "/link") == 0 && symlink("nowhere", path + "/broken") == 0)
        let places = [
            ("empty/.", "cannot be restored to '.'"), ("empty/..", "cannot be restored to '..'"),
            ("link", "is a symbolic link"),
            ("broken", "is a symbolic link"), ("file", "is not a directory"), ("image", "is not empty"),
        ]
        let names = try FileSystem.list(path)
        for (name, text) in places {
            let error = #expect(throws: BackupError.self, "\(name)") {
                try BackupReader(backups).restore(to: path + "/" + name) { _, _ in Issue.record("\(name): copied") }
            }
            guard case .place(let found) = error else { return #expect(Bool(false), "\(String(describing: error))") }
            #expect(found.contains(text), "\(found)")
        }
        #expect(try FileSystem.list(path) == names && FileSystem.list(path + "/empty") == [])
        try BackupReader(backups).restore(to: path + "/empty")
    }

    /// Two concurrent restores to one destination do not mix. Leftovers of an interrupted restore are removed.
    @Test func aConcurrentRestoreToTheSameDestinationFails() throws {
        _ = try BackupWriter.write(image: image, to: backups, time: 1)
        let place = parent.path + "/restored"
        try FileSystem.makeDirectories(parent.path + "/.restoring-restored/old/more")
        let reader = try BackupReader(backups)
        try reader.restore(to: place) { _, _ in
            #expect(throws: BackupError.place("another backup is being restored to \(place)")) {
                try reader.restore(to: place)
            }
        }
        #expect(try BackupWriter.files(below: place) == BackupWriter.files(below: image))
        #expect(!FileSystem.exists(place + "/old") && !FileSystem.exists(parent.path + "/.restoring-restored"))
    }

    /// Between two file systems all files are copied, because hard links are not possible.
    @Test func aBackupToAnotherFileSystemCopiesAllFiles() throws {
        let memory = try TemporaryDirectory(inMemory: true)
        let first = try BackupWriter.write(image: image, to: memory.path + "/backups", time: 1)
        #expect(first.newBytes == first.bytes)
        #expect(try BackupWriter.write(image: image, to: memory.path + "/backups", time: 2).newBytes == 12)
        #expect(try BackupReader(memory.path + "/backups").verify() == [])
    }
}
