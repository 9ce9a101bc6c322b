import LarderPlatform

/// Makes a backup from an image (a consistent copy of a larder's files).
///
/// A table that the previous backup also has, with the same content, is hard-linked from there. Any other table is
/// hard-linked from the image, or copied if the image is on another file system. All other files are copied. The new
/// backup has a temporary name until it is complete and synced.
package struct BackupWriter {
    private let name: String
    private let previous: PreviousBackup?
    private var list = BackupList()
    private var doneBytes = 0
    private let totalBytes: Int
    private let note: (_ done: Int, _ total: Int) -> Void
    private var result: Result
    /// The number of tables that the previous backup has with the same name but different content.
    private var differing = 0

    /// The result of a backup.
    package struct Result: Sendable {
        package var path = ""
        package var files = 0
        package var bytes = 0
        /// The total size in bytes of the backup's files, except for hard links to files of the previous backup.
        package var newBytes = 0
        /// Problems of previous backups, one line each. They do not affect the new backup.
        package var warnings: [String] = []
    }

    /// - Parameters:
    ///   - path: the directory of backups.
    ///   - time: the time of the backup, in seconds since 1970.
    ///   - note: receives the numbers of bytes that are done, and of all bytes, after each file.
    private init(
        _ path: String, time: Int64, totalBytes: Int, note: @escaping (_ done: Int, _ total: Int) -> Void
    ) throws(BackupError) {
        let directory = BackupDirectory(path)
        let last = try directory.takenNames().last
        var name = Self.name(ofTime: time)
        var number = 1
        // Add a number if the previous backup was made in the same second, or if the clock was set back since then.
        // This keeps the newest backup last in the order of names.
        while let last, name <= last {
            number += 1
            name = String(last.prefix(16)) + "-" + number.zeroPadded(3)
            if number > 999 { throw .place("\(path) already has 999 backups of the same second; try again later") }
        }
        self.name = name
        self.note = note
        self.totalBytes = totalBytes
        var result = Result()
        previous = try PreviousBackup.newest(of: directory) { result.warnings.append($0) }
        self.result = result
    }

    private static func name(ofTime seconds: Int64) -> String {
        var (instant, parts) = (time_t(seconds), tm())
        gmtime_r(&instant, &parts)
        let date = [parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday].map { $0.zeroPadded(2) }
        let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { $0.zeroPadded(2) }
        return date.joined() + "T" + time.joined() + "Z"
    }

    /// Makes a backup.
    /// - Parameters:
    ///   - image: the directory of the image, which is inside the larder's directory.
    ///   - path: the directory of backups; created if it is missing.
    ///   - time: the time of the backup, in seconds since 1970.
    ///   - note: receives the numbers of bytes that are done, and of all bytes, after each file.
    /// - Throws: `.place` if this or another process is already making a backup in `path`; `.damaged` if a file of the
    ///   larder is damaged; `.io` for errors of the operating system. In these cases no backup is made.
    package static func write(
        image: String, to path: String, time: Int64, note: @escaping (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws(BackupError) -> Result {
        let lock = try Self.lock(path, larder: FileSystem.parent(image))
        let result = Swift.Result { () throws(BackupError) in
            try clear(path)
            return try writeLocked(image: image, to: path, time: time, note: note)
        }
        lock.remove()
        return try result.get()
    }

    private static func lock(_ path: String, larder: String) throws(BackupError) -> FileLock {
        let place = path + "/" + BackupDirectory.lockName
        do throws(FileError) {
            try FileSystem.makeDirectories(path)
            if let lock = try FileLock.file(place, note: "process \(getpid()), for the larder \(larder)") {
                return lock
            }
        } catch {
            throw .place("\(error)")
        }
        let holder = FileLock.note(place).map { " (\($0))" } ?? ""
        throw .place("another backup is being made in \(path)\(holder); no backup was made, try again later")
    }

    private static func writeLocked(
        image: String, to path: String, time: Int64, note: @escaping (_ done: Int, _ total: Int) -> Void
    ) throws(BackupError) -> Result {
        let names = try files(below: image)
        let totalBytes = names.reduce(0) { $0 + FileSystem.size(image + "/" + $1) }
        var writer = try BackupWriter(path, time: time, totalBytes: totalBytes, note: note)
        let unfinished = path + "/" + BackupDirectory.unfinishedPrefix + writer.name
        do {
            try writer.write(names, from: image, to: unfinished)
            try FileSystem.rename(unfinished, to: path + "/" + writer.name)
            try FileSystem.syncDirectory(path)
        } catch {
            try? FileSystem.removeTree(unfinished)
            if case .damaged(let text) = error as? BackupError { throw .damaged("\(text); no backup was made") }
            throw .io("\(error); no backup was made")
        }
        writer.result.path = path + "/" + writer.name
        writer.warnOfOtherLarder()
        return writer.result
    }

    private mutating func warnOfOtherLarder() {
        guard differing > 0, let previous else { return }
        result.warnings.append(
            "\(previous.path) and the larder have different tables with the same names (\(differing)), which were not "
                + "linked: that backup is of another larder, the larder was restored since, or one of them is damaged")
    }

    /// Removes unfinished backups of earlier, interrupted attempts.
    private static func clear(_ path: String) throws(BackupError) {
        do throws(FileError) {
            for name in try FileSystem.list(path) where name.hasPrefix(BackupDirectory.unfinishedPrefix) {
                try FileSystem.removeTree(path + "/" + name)
            }
        } catch {
            throw .io("\(error)")
        }
    }

    private mutating func write(_ names: [String], from image: String, to place: String) throws {
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

    private mutating func add(_ name: String, _ source: String, _ target: String) throws {
        let byteCount = FileSystem.size(source)
        if name.hasSuffix(".ldb") || name.hasSuffix(".sst") {
            try addTable(name, source, target)
        } else {
            try addNew(name, FileDigest.copy(source, to: target))
        }
        doneBytes += byteCount
        note(doneBytes, totalBytes)
    }

    private mutating func addTable(_ name: String, _ source: String, _ target: String) throws {
        if let previous, previous.has(name) {
            let file = try FileDigest.read(source)
            switch try previous.link(name, sameAs: source, file, to: target) {
            case .linked:
                list.files[name] = file
                return
            case .differs: differing += 1
            case .useless(let problem):
                if let problem { result.warnings.append("\(problem); it was copied from the larder again") }
            }
        }
        if (try? FileSystem.hardLink(source, to: target)) != nil {
            try addNew(name, FileDigest.read(target))
        } else {
            try addNew(name, FileDigest.copy(source, to: target))
        }
    }

    private mutating func addNew(_ name: String, _ found: FileDigest) {
        list.files[name] = found
        result.newBytes += found.byteCount
    }

    /// Returns the relative paths of all files below a directory, in order. Does not follow symbolic links, which count
    /// as files.
    /// - Parameter withEmpty: whether to include empty directories, with a slash after their names.
    static func files(below directory: String, withEmpty: Bool = false) throws(BackupError) -> [String] {
        do throws(FileError) {
            return try listed(directory, "").filter { withEmpty || !$0.hasSuffix("/") }
        } catch {
            throw .io("\(error)")
        }
    }

    private static func listed(_ directory: String, _ prefix: String) throws(FileError) -> [String] {
        let found = try FileSystem.list(directory)
        if found.isEmpty, !prefix.isEmpty { return [prefix] }
        var names: [String] = []
        for name in found {
            let path = directory + "/" + name
            if let status = try FileSystem.linkStatus(path), status.st_mode & S_IFMT == S_IFDIR {
                names += try listed(path, prefix + name + "/")
            } else {
                names.append(prefix + name)
            }
        }
        return names
    }
}
