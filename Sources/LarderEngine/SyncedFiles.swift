import LevelDB

/// How much of LevelDB's log and manifest is known to be on the disk: the small file `<epoch>/SYNCED`.
///
/// LevelDB cannot tell a torn write from damage: a record that is cut short at the end of a file is taken for one that was
/// being written, and passed over, even if it had been synced long ago; so is a whole log that is missing. This file says
/// what has to be there: anything bad or missing before that is damage, anything bad behind it was never promised, and the
/// journal still has it. It is written when LevelDB was opened, and before segments of the journal go.
///
/// It is text, one `name value` a line, the last line the checksum of all before it:
/// ```
/// larder-synced 1
/// manifest 4 1289
/// log 6 20480
/// crc32c 0a1b2c3d
/// ```
struct SyncedFiles: Equatable {
    static let name = "SYNCED"
    static let formatVersion = 1

    /// The manifest's number and length in bytes.
    var manifest: (number: UInt64, byteCount: Int)
    /// The lengths of the logs in bytes, by their numbers.
    var logs: [UInt64: Int]

    static func == (left: SyncedFiles, right: SyncedFiles) -> Bool {
        left.manifest == right.manifest && left.logs == right.logs
    }

    var text: String {
        var body = "larder-synced \(Self.formatVersion)\nmanifest \(manifest.number) \(manifest.byteCount)\n"
        for (number, byteCount) in logs.sorted(by: { $0.key < $1.key }) { body += "log \(number) \(byteCount)\n" }
        return body + PointerFile.checksumLine(of: body)
    }

    init(manifest: (number: UInt64, byteCount: Int), logs: [UInt64: Int]) {
        self.manifest = manifest
        self.logs = logs
    }

    /// - Returns: nil for what is no such file.
    init?(parsing bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 4, lines.popLast() == "", let checksum = lines.popLast() else { return nil }
        let body = lines.map { $0 + "\n" }.joined()
        guard checksum + "\n" == PointerFile.checksumLine(of: body) else { return nil }
        let fields = lines.map { $0.split(separator: " ") }
        guard fields[0] == ["larder-synced", "\(Self.formatVersion)"], fields[1].count == 3, fields[1][0] == "manifest",
            let number = UInt64(fields[1][1]), let byteCount = Int(fields[1][2])
        else { return nil }
        manifest = (number, byteCount)
        logs = [:]
        for line in fields.dropFirst(2) {
            guard line.count == 3, line[0] == "log", let number = UInt64(line[1]), let byteCount = Int(line[2]) else {
                return nil
            }
            logs[number] = byteCount
        }
    }
}

/// What was found wrong with LevelDB's files before LevelDB was let at them.
struct FilesDamage: Error {
    let message: String
}

/// What is looked at before LevelDB opens an epoch.
enum EpochInspection {
    /// What SYNCED says.
    enum Note: Equatable {
        case files(SyncedFiles)
        /// There is none: an earlier version of Larder made the epoch.
        case missing
        case unreadable

        var files: SyncedFiles? { if case .files(let files) = self { files } else { nil } }
    }

    static func note(in directory: String) throws(FileError) -> Note {
        guard let bytes = try FileSystem.read(directory + "/" + SyncedFiles.name, bytesMax: 1 << 20) else {
            return .missing
        }
        return SyncedFiles(parsing: bytes).map { .files($0) } ?? .unreadable
    }

    /// Checks that what was synced is there, and cuts off what was being written when the machine or the process stopped.
    /// What LevelDB finds by itself is left to it.
    /// - Throws: ``FilesDamage``; what the system says, a ``FileError`` or ``LevelDBError``, which may pass.
    static func prepare(_ directory: String) throws {
        let note = try note(in: directory)
        guard let manifest = try ManifestScan.scan(directory: directory) else { return }
        try check(manifest, note)
        // Who opened the files since without noting it may have synced more than anybody knows.
        let isCurrent = note.files?.manifest.number == manifest.number
        let logs = try FileSystem.list(directory).compactMap(FileNames.logNumber)
        for number in Set(logs).union(note.files?.logs.keys.map { $0 } ?? []).sorted() where manifest.needs(log: number)
        {
            try checkLog(number, in: directory, synced: note.files?.logs[number] ?? (isCurrent ? 0 : nil))
        }
    }

    private static func check(_ manifest: ManifestScan, _ note: Note) throws(FilesDamage) {
        let name = "MANIFEST-\(padded(manifest.number))"
        guard !manifest.isStrange else { throw FilesDamage(message: "\(name) says what nobody understands") }
        guard let synced = note.files?.manifest, synced.number == manifest.number else { return }
        guard manifest.log.goodBytes >= synced.byteCount else {
            throw FilesDamage(
                message: "\(name): \(manifest.log.problem ?? "it is cut short") at \(manifest.log.goodBytes), and "
                    + "\(synced.byteCount) bytes of it were synced")
        }
    }

    /// - Parameter synced: nil where nobody knows.
    private static func checkLog(_ number: UInt64, in directory: String, synced: Int?) throws {
        let name = "\(padded(number)).log"
        let scan: LogScan
        do throws(LevelDBError) {
            scan = try LogScan.scanBatches(directory + "/" + name)
        } catch {
            guard error.code == .notFound else { throw error }
            throw FilesDamage(message: "\(name) is missing")
        }
        guard let problem = scan.problem ?? (scan.fileBytes < synced ?? 0 ? "the file ends" : nil) else { return }
        guard scan.goodBytes >= synced ?? 0 else {
            throw FilesDamage(message: "\(name): \(problem) at \(scan.goodBytes), and \(synced ?? 0) bytes were synced")
        }
        // What LevelDB passes over by itself need not be cut off.
        guard !scan.isCutShort else { return }
        guard synced != nil else { throw FilesDamage(message: "\(name): \(problem) at \(scan.goodBytes)") }
        try FileSystem.truncate(directory + "/" + name, to: scan.goodBytes)
    }

    /// How LevelDB writes numbers of files.
    static func padded(_ number: UInt64) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }
}
