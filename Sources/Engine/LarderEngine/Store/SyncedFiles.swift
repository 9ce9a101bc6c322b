import LarderLevelDBFormat
import LarderPlatform

/// The content of the small file `<epoch>/SYNCED`: how much of LevelDB's logs and manifest is known to be on the disk,
/// and the current tables.
///
/// LevelDB cannot distinguish a torn write from damage. If a file ends within a record, LevelDB assumes that the record
/// was being written, and ignores it. It does so even if the record was synced long ago. It also ignores a missing log.
/// SYNCED records what must exist. If anything in the recorded parts is invalid or missing, the files are damaged.
/// Invalid bytes after these parts are an incomplete write, and the journal still has its entries. SYNCED is written
/// when LevelDB is opened, before journal segments are removed, and when LevelDB is closed after it has merged tables.
///
/// If the manifest is lost, only SYNCED shows which tables were current. A table that LevelDB has merged into another
/// may still exist because of a snapshot; reading it would bring back removed entries.
///
/// The file is text with one name and its values per line; the last line is the checksum of all previous lines:
/// ```
/// larder-synced 1
/// manifest 4 1289
/// files 9 6 0
/// log 6 20480
/// table 5 0 1258 016b00… 017a00…
/// crc32c 0a1b2c3d
/// ```
struct SyncedFiles: Equatable {
    static let name = "SYNCED"
    static let formatVersion = 1

    /// What is recorded of the manifest: its number, its length (`log.goodBytes`), the tables, and the numbers that say
    /// which files LevelDB needs. `nextFileNumber` is 0 if only number and length were recorded.
    var manifest: ManifestScan
    /// The lengths of the logs in bytes, by their numbers.
    var logs: [UInt64: Int]

    static func == (left: SyncedFiles, right: SyncedFiles) -> Bool { left.text == right.text }

    var text: String {
        var body = "larder-synced \(Self.formatVersion)\nmanifest \(manifest.number) \(manifest.log.goodBytes)\n"
        if let manifest = knownManifest {
            body += "files \(manifest.nextFileNumber) \(manifest.logNumber) \(manifest.previousLogNumber)\n"
        }
        for (number, byteCount) in logs.sorted(by: { $0.key < $1.key }) { body += "log \(number) \(byteCount)\n" }
        for (number, table) in manifest.tables.sorted(by: { $0.key < $1.key }) {
            body +=
                "table \(number) \(table.level) \(table.byteCount) "
                + "\(Self.text(table.smallest)) \(Self.text(table.largest))\n"
        }
        return body + CRC32C.line(of: body)
    }

    /// The recorded content of the manifest; nil if only its number and length were recorded.
    var knownManifest: ManifestScan? { manifest.nextFileNumber > 0 ? manifest : nil }

    /// Records the current contents of a manifest.
    init(_ manifest: ManifestScan, logs: [UInt64: Int]) {
        (self.manifest, self.logs) = (manifest, logs)
        for (number, table) in manifest.tables {
            if table.smallest.count > Self.keyBytesMax { self.manifest.tables[number]?.smallest = [] }
            if table.largest.count > Self.keyBytesMax { self.manifest.tables[number]?.largest = [] }
        }
    }

    /// The maximum length of a recorded key in bytes. If a key is longer, the key range of its table is unknown.
    private static let keyBytesMax = 512
    /// The maximum size of the file in bytes: more than is needed for tens of thousands of tables.
    static let bytesMax = 64 << 20

    private static func text(_ key: [UInt8]) -> String { key.isEmpty ? "-" : HexText.text(key) }

    /// Parses a key in hexadecimal; nil if it is malformed. A key that was not recorded is empty.
    private static func key(_ text: Substring) -> [UInt8]? {
        text == "-" ? [] : HexText.bytes(String(text)).flatMap { $0.count >= 8 ? $0 : nil }
    }

    /// Parses the file; nil if it is malformed.
    init?(parsing bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 4, lines.popLast() == "", let checksum = lines.popLast() else { return nil }
        let body = lines.map { $0 + "\n" }.joined()
        guard checksum + "\n" == CRC32C.line(of: body) else { return nil }
        let fields = lines.map { $0.split(separator: " ") }
        guard fields[0] == ["larder-synced", "\(Self.formatVersion)"], fields[1].count == 3, fields[1][0] == "manifest",
            let number = UInt64(fields[1][1]), let byteCount = Int(fields[1][2])
        else { return nil }
        manifest = ManifestScan(number: number)
        manifest.log.goodBytes = byteCount
        logs = [:]
        for line in fields.dropFirst(2) { guard take(line) else { return nil } }
    }

    private mutating func take(_ line: [Substring]) -> Bool {
        switch (line.first, line.count) {
        case ("log", 3):
            guard let number = UInt64(line[1]), let byteCount = Int(line[2]) else { return false }
            logs[number] = byteCount
        case ("files", 4):
            guard let next = UInt64(line[1]), let log = UInt64(line[2]), let previous = UInt64(line[3]) else {
                return false
            }
            (manifest.nextFileNumber, manifest.logNumber, manifest.previousLogNumber) = (next, log, previous)
        case ("table", 6):
            guard let number = UInt64(line[1]), let level = Int(line[2]), let byteCount = Int(line[3]),
                let smallest = Self.key(line[4]), let largest = Self.key(line[5])
            else { return false }
            manifest.tables[number] = ManifestScan.Table(
                level: level, byteCount: byteCount, smallest: smallest, largest: largest)
        default: return false
        }
        return true
    }
}

/// The damage found in LevelDB's files before LevelDB opened them.
struct FilesDamage: Error {
    let message: String
}

/// The checks before LevelDB opens an epoch.
enum EpochInspection {
    /// The contents of SYNCED.
    enum Note: Equatable {
        case files(SyncedFiles)
        /// The file does not exist: an earlier version of Larder created the epoch.
        case missing
        case unreadable

        var files: SyncedFiles? { if case .files(let files) = self { files } else { nil } }
    }

    static func note(in directory: String) throws(FileError) -> Note {
        let path = directory + "/" + SyncedFiles.name
        guard let bytes = try FileSystem.read(path, bytesMax: SyncedFiles.bytesMax) else { return .missing }
        return SyncedFiles(parsing: bytes).map { .files($0) } ?? .unreadable
    }

    /// If necessary, rewrites the file `CURRENT`, which names LevelDB's manifest. After a machine failure, `CURRENT`
    /// may be empty or name the previous manifest.
    /// - Returns: the manifest's name; nil if nothing had to be done.
    /// - Throws: an error of the operating system, which may be temporary, as ``FileError``.
    static func renewCurrent(_ directory: String) throws -> String? {
        guard let name = try pendingCurrent(directory) else { return nil }
        let path = directory + "/" + FileNames.current
        if let unsynced = try FileSystem.replace(path, with: Array("\(name)\n".utf8)) { throw unsynced }
        return name
    }

    /// Like ``renewCurrent(_:)``, but changes nothing.
    /// - Returns: the manifest's name; nil if nothing has to be done.
    static func pendingCurrent(_ directory: String) throws -> String? {
        guard let (name, scan) = try ManifestScan.successor(directory: directory) else { return nil }
        if let synced = try note(in: directory).files?.manifest {
            // If the recorded manifest is missing or too short, that is damage, and CURRENT must not be changed.
            let isEnough = synced.number == scan.number && synced.log.goodBytes <= scan.log.goodBytes
            guard synced.number < scan.number || isEnough else { return nil }
        }
        return name
    }

    /// Checks that all parts recorded in SYNCED exist, and removes invalid bytes that a crash has left at the end of a
    /// log. LevelDB itself detects all other errors.
    /// - Returns: the contents of SYNCED.
    /// - Throws: ``FilesDamage``; or an error of the operating system, which may be temporary, as ``FileError``.
    static func prepare(_ directory: String) throws -> Note {
        let (note, ends) = try inspect(directory)
        for (name, length) in ends { try FileSystem.truncate(directory + "/" + name, to: length) }
        return note
    }

    /// Like ``prepare(_:)``, but changes nothing.
    /// - Returns: the contents of SYNCED, and the files to truncate with their valid lengths.
    @discardableResult
    static func inspect(_ directory: String) throws -> (note: Note, ends: [(name: String, length: Int)]) {
        let note = try note(in: directory)
        var ends: [(name: String, length: Int)] = []
        guard let manifest = try ManifestScan.scan(directory: directory) else { return (note, ends) }
        try check(manifest, note)
        // If the manifest is newer than the recorded one, another program has opened the files since. That program may
        // have synced more than SYNCED records.
        let isCurrent = note.files?.manifest.number == manifest.number
        let logs = try FileSystem.list(directory).compactMap(FileNames.logNumber)
        for number in Set(logs).union(note.files?.logs.keys.map { $0 } ?? []).sorted() where manifest.needs(log: number)
        {
            let synced = note.files?.logs[number] ?? (isCurrent ? 0 : nil)
            if let end = try checkLog(number, in: directory, synced: synced) { ends.append(end) }
        }
        return (note, ends)
    }

    private static func check(_ manifest: ManifestScan, _ note: Note) throws(FilesDamage) {
        let name = FileNames.manifest(manifest.number)
        guard !manifest.hasUnknownEdit else { throw FilesDamage(message: "\(name) has an unknown edit") }
        guard let synced = note.files?.manifest, synced.number == manifest.number else { return }
        guard manifest.log.goodBytes >= synced.log.goodBytes else {
            throw FilesDamage(
                message: "\(name): \(manifest.log.problem ?? "it is cut short") at byte \(manifest.log.goodBytes), but "
                    + "\(synced.log.goodBytes) were synced")
        }
    }

    /// Checks one log.
    /// - Parameter synced: the synced length of the log in bytes; nil if unknown.
    /// - Returns: the length to which the log must be truncated; nil if it need not be.
    private static func checkLog(
        _ number: UInt64, in directory: String, synced: Int?
    ) throws -> (name: String, length: Int)? {
        let name = FileNames.log(number)
        let scan: LogScan
        do throws(FileError) {
            scan = try LogScan.scanBatches(directory + "/" + name)
        } catch {
            guard error.number == ENOENT else { throw error }
            throw FilesDamage(message: "\(name) is missing")
        }
        guard let problem = scan.problem ?? (scan.fileBytes < synced ?? 0 ? "the file ends" : nil) else { return nil }
        guard scan.goodBytes >= synced ?? 0 else {
            throw FilesDamage(message: "\(name): \(problem) at byte \(scan.goodBytes), but \(synced ?? 0) were synced")
        }
        // An incomplete last record need not be truncated, because LevelDB itself ignores it.
        guard !scan.isCutShort else { return nil }
        guard synced != nil else { throw FilesDamage(message: "\(name): \(problem) at \(scan.goodBytes)") }
        return (name, scan.goodBytes)
    }
}

// MARK: Writing

extension SyncedFiles {
    /// The names of LevelDB's logs and their lengths in bytes. Called while nothing is being written to the logs.
    static func logLengths(in path: String) throws(FileError) -> [(String, Int)] {
        try FileSystem.list(path).filter { FileNames.logNumber($0) != nil }.map {
            ($0, FileSystem.size(path + "/" + $0))
        }
    }

    /// Syncs the logs and the manifest in the directory `path`, and writes SYNCED.
    /// - Parameter logs: the names of the logs, and their lengths to record.
    /// - Returns: the number and length of the manifest, as recorded in SYNCED.
    @discardableResult
    static func write(
        to path: String, logs: [(String, Int)], _ database: String
    ) throws -> (number: UInt64, byteCount: Int) {
        var synced: [UInt64: Int] = [:]
        for (name, byteCount) in logs {
            var length = 0
            // LevelDB removes a log after it has written the log's content to a table, and synced the manifest that
            // names the table. So a log that no longer exists is not needed.
            guard try FileSystem.sync(path + "/" + name, byteCount: &length) else { continue }
            if let number = FileNames.logNumber(name) { synced[number] = byteCount }
        }
        guard let manifest = try ManifestScan.scan(directory: path) else {
            throw LarderError(
                .damaged, "CURRENT or its manifest is missing from \(path)", operation: "sync", database: database)
        }
        var length = 0
        _ = try FileSystem.sync(path + "/" + FileNames.manifest(manifest.number), byteCount: &length)
        let files = SyncedFiles(manifest, logs: synced)
        // This also syncs the directory, which LevelDB does not do when it creates a log.
        let unsynced = try FileSystem.replace(path + "/" + Self.name, with: Array(files.text.utf8))
        if let unsynced { throw unsynced }
        return (manifest.number, manifest.log.goodBytes)
    }
}
