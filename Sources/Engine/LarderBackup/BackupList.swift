import LarderPlatform

/// The content of the file `BACKUP` in a backup: the names, lengths and digests of the backup's other files.
///
/// It is text with one line per file (digest, length in bytes, name), ordered by name. The last line is the CRC-32C of
/// all lines before it:
/// ```
/// larder-backup 1
/// file 7b3f0a11 221 0/POINTER
/// file 0c5e9a7f 1258291 0/1700000000001/000005.ldb
/// crc32c 9f0e1d2c
/// ```
struct BackupList: Equatable {
    static let fileName = "BACKUP"
    private static let firstLine = "larder-backup 1"

    /// The files, by their paths relative to the backup's directory.
    var files: [String: FileDigest] = [:]

    var byteCount: Int { files.values.reduce(0) { $0 + $1.byteCount } }

    init() {}

    var text: String {
        var body = Self.firstLine + "\n"
        for (name, file) in files.sorted(by: { $0.key < $1.key }) {
            body += "file \(file.text) \(file.byteCount) \(name)\n"
        }
        return body + "crc32c \(FileDigest(of: body).text)\n"
    }

    /// Parses a list.
    /// - Parameter path: the path of the list, for error messages.
    /// - Throws: `.damaged` if the list is malformed, `.newerFormat` if a newer version of Larder wrote it.
    init(parsing bytes: [UInt8], path: String) throws(BackupError) {
        let damaged = BackupError.damaged("\(path) is damaged: nothing of this backup can be trusted")
        guard let text = String(validating: bytes, as: UTF8.self) else { throw damaged }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.popLast() == "", let last = lines.popLast(), last.hasPrefix("crc32c "),
            last.dropFirst(7) == FileDigest(of: lines.map { $0 + "\n" }.joined()).text
        else { throw damaged }
        guard lines.first == Self.firstLine[...] else {
            throw .newerFormat("\(path) was written by a newer version of Larder ('\(lines.first ?? "")')")
        }
        for line in lines.dropFirst() {
            let fields = line.split(separator: " ", maxSplits: 3)
            guard fields.count == 4, fields[0] == "file", let byteCount = Int(fields[2]), byteCount >= 0,
                let digest = FileDigest(fields[1], byteCount: byteCount), Self.isInside(fields[3])
            else { throw damaged }
            files[String(fields[3])] = digest
        }
    }

    /// Whether a relative path stays inside the backup's directory.
    private static func isInside(_ name: Substring) -> Bool {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        return parts.allSatisfy { !$0.isEmpty && $0 != "." && $0 != ".." }
    }

    /// The maximum length in bytes of a list that is read: 1 GiB.
    private static let bytesMax = 1 << 30

    /// Reads the list of a backup.
    init(of directory: String) throws(BackupError) {
        let path = directory + "/" + Self.fileName
        var bytes: [UInt8] = []
        do throws(FileError) {
            _ = try FileDigest.read(path) { (piece) throws(FileError) in
                guard bytes.count + piece.count <= Self.bytesMax else {
                    throw FileError(operation: "read", path: path, number: EFBIG)
                }
                bytes += piece
            }
        } catch {
            if error.number == ENOENT { throw .noBackup("\(directory) is not a backup: \(Self.fileName) is missing") }
            guard let problem = BackupReader.problem(path, error) else { throw .io("\(error)") }
            throw .damaged("\(problem): nothing of this backup can be trusted")
        }
        try self.init(parsing: bytes, path: path)
    }
}
