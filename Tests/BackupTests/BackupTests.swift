import Platform
import TestSupport
import Testing

@testable import Backup

/// Backups of directories: what is linked and copied, what is noticed, what is left of failures.
@Suite struct BackupTests {
    private let parent: TemporaryDirectory
    private var image: String { parent.path + "/image" }
    private var backups: String { parent.path + "/backups" }

    init() throws {
        parent = try TemporaryDirectory()
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
        try reader.restore(to: place) { steps.add($0.doneBytes) }
        #expect(steps.all.last == 3_000_012 && steps.all.sorted() == steps.all)
        #expect(try BackupWriter.files(below: place) == BackupWriter.files(below: image))
        for name in try BackupWriter.files(below: image) {
            #expect(try Files.read(place + "/" + name) == Files.read(image + "/" + name), "\(name)")
            #expect(inode(place + "/" + name) != inode(result.path + "/" + name), "a larder does not share files")
        }
    }

    /// Tables come from the former backup, everything else is copied; the former one goes without harm to the next.
    @Test func theNextBackupTakesTablesFromTheFormer() throws {
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

    /// A table with a known name and another length is not the same.
    @Test func aTableOfAnotherLengthIsNew() throws {
        _ = try BackupWriter.write(image: image, to: backups, time: 1)
        try Files.remove(image + "/books/17/000005.ldb")
        try Files.write(image + "/books/17/000005.ldb", [1])
        #expect(try BackupWriter.write(image: image, to: backups, time: 2).bytes == 13)
        #expect(try BackupReader(backups).verify() == [])
    }

    @Test(arguments: ["SEQUENCES", "books/17/000005.ldb", "books/17/000006.log", BackupList.fileName])
    func everyChangedByteIsNoticed(name: String) throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        let path = backup + "/" + name
        // Not the original, which a table is linked to.
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

    @Test func whatDoesNotBelongIsTold() throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        try Files.write(backup + "/books/more", [])
        #expect(try BackupReader(backup).verify() == ["books/more does not belong to the backup"])
    }

    /// A list that names a file outside is not followed.
    @Test(arguments: ["../secret", "/etc/passwd", "books/../../x", "", "books//x", "."])
    func namesThatLeadOutsideAreRefused(name: String) throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        let body = "larder-backup 1\nfile 00000000 0 \(name)\n"
        try Files.write(
            backup + "/" + BackupList.fileName, Array((body + "crc32c \(FileDigest(of: body).text)\n").utf8))
        #expect(throws: BackupError.self) { try BackupReader(backup) }
    }

    @Test func aLaterVersionIsRefused() throws {
        let backup = try BackupWriter.write(image: image, to: backups, time: 1).path
        let body = "larder-backup 2\n"
        try Files.write(
            backup + "/" + BackupList.fileName, Array((body + "crc32c \(FileDigest(of: body).text)\n").utf8))
        let error = #expect(throws: BackupError.self) { try BackupReader(backup) }
        guard case .newerFormat = error else { return #expect(Bool(false), "\(String(describing: error))") }
    }

    /// What an interrupted attempt has left does not count, and goes with the next.
    @Test func anUnfinishedBackupDoesNotCount() throws {
        try FileSystem.makeDirectories(backups + "/.unfinished-20231114T221320Z/books")
        try FileSystem.makeDirectories(backups + "/20231114T221320Z")
        #expect(throws: BackupError.self) { try BackupReader(backups) }
        _ = try BackupWriter.write(image: image, to: backups, time: 1_800_000_000)
        #expect(try FileSystem.list(backups) == ["20231114T221320Z", "20270115T080000Z"])
    }

    @Test func aBackupThatFailsLeavesNothing() throws {
        // A link that leads nowhere cannot be read.
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

    /// On another file system everything is copied.
    @Test func anotherFileSystemIsCopiedTo() throws {
        let memory = try TemporaryDirectory(inMemory: true)
        let first = try BackupWriter.write(image: image, to: memory.path + "/backups", time: 1)
        #expect(first.newBytes == first.bytes)
        #expect(try BackupWriter.write(image: image, to: memory.path + "/backups", time: 2).newBytes == 12)
        #expect(try BackupReader(memory.path + "/backups").verify() == [])
    }
}
