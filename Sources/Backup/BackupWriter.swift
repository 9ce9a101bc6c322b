import Platform

/// Makes a backup from an image of a larder.
///
/// What the former backup has is linked from there: tables never change, and no two have the same name. What is new is
/// linked from the image if it is on the same file system, and copied else. Until it is complete and synced, the backup
/// has another name.
package struct BackupWriter {
    private let directory: BackupDirectory
    private let name: String
    private var former: (path: String, list: BackupList)?
    private var list = BackupList()
    private var progress: BackupProgress
    private let note: (BackupProgress) -> Void
    private var result: Result

    /// What was done.
    package struct Result: Sendable {
        package var path = ""
        package var files = 0
        package var bytes = 0
        /// The bytes that did not come from the former backup.
        package var newBytes = 0
    }

    /// - Parameters:
    ///   - path: the directory of backups; made if it is missing.
    ///   - time: seconds since 1970.
    ///   - note: is told how far it has come.
    private init(_ path: String, time: Int64, totalBytes: Int, note: @escaping (BackupProgress) -> Void)
        throws(BackupError)
    {
        directory = BackupDirectory(path)
        let names = try directory.names()
        var name = Self.name(ofTime: time)
        var number = 1
        // The same second, or a clock that was set back: the newest has the last name all the same.
        while let last = names.last, name <= last {
            number += 1
            name =
                String(last.prefix(16)) + "-" + String(repeating: "0", count: max(0, 3 - "\(number)".count))
                + "\(number)"
            if number > 999 { throw .place("\(path) has too many backups of the same second") }
        }
        self.name = name
        self.note = note
        progress = BackupProgress(totalBytes: totalBytes)
        result = Result()
        if let last = names.last {
            let former = path + "/" + last
            // One that is damaged helps nobody.
            if let list = try? BackupList(of: former) { self.former = (former, list) }
        }
    }

    private static func name(ofTime seconds: Int64) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func text(_ number: Int32, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
        }
        return text(parts.tm_year + 1900, 4) + text(parts.tm_mon + 1, 2) + text(parts.tm_mday, 2) + "T"
            + text(parts.tm_hour, 2) + text(parts.tm_min, 2) + text(parts.tm_sec, 2) + "Z"
    }

    /// Makes a backup.
    /// - Parameters:
    ///   - image: the directory of the image.
    ///   - path: the directory of backups.
    package static func write(
        image: String, to path: String, time: Int64, note: @escaping (BackupProgress) -> Void = { _ in }
    ) throws(BackupError) -> Result {
        do throws(FileError) {
            try FileSystem.makeDirectories(path)
        } catch {
            throw .place("\(error)")
        }
        try clear(path)
        let names = try files(below: image)
        let totalBytes = names.reduce(0) { $0 + FileSystem.size(image + "/" + $1) }
        var writer = try BackupWriter(path, time: time, totalBytes: totalBytes, note: note)
        let unfinished = path + "/" + BackupDirectory.unfinishedPrefix + writer.name
        do throws(FileError) {
            try writer.write(names, from: image, to: unfinished)
            try FileSystem.rename(unfinished, to: path + "/" + writer.name)
            try FileSystem.syncDirectory(path)
        } catch {
            try? FileSystem.removeTree(unfinished)
            throw .io("\(error); no backup was made")
        }
        writer.result.path = path + "/" + writer.name
        return writer.result
    }

    /// Removes what an earlier attempt has left.
    private static func clear(_ path: String) throws(BackupError) {
        do throws(FileError) {
            for name in try FileSystem.list(path) where name.hasPrefix(BackupDirectory.unfinishedPrefix) {
                try FileSystem.removeTree(path + "/" + name)
            }
        } catch {
            throw .io("\(error)")
        }
    }

    private mutating func write(_ names: [String], from image: String, to place: String) throws(FileError) {
        try FileSystem.makeDirectory(place)
        var directories: Set<String> = [place]
        for name in names {
            let target = place + "/" + name
            let parent = FileSystem.parent(target)
            if directories.insert(parent).inserted {
                try FileSystem.makeDirectories(parent)
                directories.insert(FileSystem.parent(parent))
            }
            try add(name, image + "/" + name, target)
        }
        try FileSystem.writeFile(place + "/" + BackupList.fileName, Array(list.text.utf8))
        for directory in directories.sorted(by: >) { try FileSystem.syncDirectory(directory) }
        result.files = list.files.count
        result.bytes = list.byteCount
    }

    private mutating func add(_ name: String, _ source: String, _ target: String) throws(FileError) {
        let isTable = name.hasSuffix(".ldb") || name.hasSuffix(".sst")
        let byteCount = FileSystem.size(source)
        if isTable, let former, let known = former.list.files[name], known.byteCount == byteCount,
            (try? FileSystem.hardLink(former.path + "/" + name, to: target)) != nil
        {
            list.files[name] = known
        } else {
            let new: (digest: FileDigest, byteCount: Int)
            if isTable, (try? FileSystem.hardLink(source, to: target)) != nil {
                new = try FileDigest.read(target)
            } else {
                new = try FileDigest.copy(source, to: target)
            }
            list.files[name] = BackupList.File(digest: new.digest, byteCount: new.byteCount)
            result.newBytes += new.byteCount
        }
        progress.doneBytes += byteCount
        note(progress)
    }

    /// The names of all files below a directory, in order.
    static func files(below directory: String) throws(BackupError) -> [String] {
        do throws(FileError) {
            return try listed(directory, "")
        } catch {
            throw .io("\(error)")
        }
    }

    private static func listed(_ directory: String, _ prefix: String) throws(FileError) -> [String] {
        var names: [String] = []
        for name in try FileSystem.list(directory) {
            let path = directory + "/" + name
            if FileSystem.isDirectory(path) {
                names += try listed(path, prefix + name + "/")
            } else {
                names.append(prefix + name)
            }
        }
        return names
    }
}
