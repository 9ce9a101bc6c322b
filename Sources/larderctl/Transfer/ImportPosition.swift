import CLarderCRC32C
import LarderJSONCoding
import LarderPlatform

/// The position of an import in its file. It is stored in `FILE.position` until the import is complete, so that an
/// interrupted import can continue.
///
/// All entries before the position were acknowledged by the daemon. The position is valid only for the same file,
/// larder and options; otherwise the import starts from the beginning, without overwriting newer entries.
struct ImportPosition: Equatable {
    /// The file, the larder and the options of an import.
    struct Identity: Equatable {
        /// The CRC-32C of the file's first line, which contains the start time of the export.
        var header: UInt32
        /// The directory of the larder into which entries are imported.
        var larder: String
        /// The options that determine which entries are imported: see ``Importer/Choice/text``.
        var options: String
    }

    var identity: Identity
    /// The offset of the end of the last imported line, and the number of that line.
    var offset: Int
    var line: Int
    /// The CRC-32C of the last bytes before ``offset`` (at most 4096), to detect that the file was changed.
    var tail: UInt32
    var report = Importer.Report()

    private static let format = "larder-import-position"
    private static let tailBytes = 4096

    static func digest(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        larder_crc32c_extend(0, bytes.baseAddress, bytes.count)
    }

    /// Returns the CRC-32C of the last bytes before an offset; nil if the file is shorter.
    static func tail(_ descriptor: Int32, before offset: Int) -> UInt32? {
        let count = min(offset, tailBytes)
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress.map { $0 + done }, count - done, off_t(offset - count + done))
            }
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { return nil }
            done += got
        }
        return bytes.withUnsafeBytes { digest($0) }
    }

    static func path(_ file: String) -> String { file + ".position" }

    // MARK: The file

    private var text: JSONText {
        [
            "format": Self.format, "version": 1, "header": identity.header, "larder": identity.larder,
            "options": identity.options, "offset": offset, "line": line, "tail": tail, "imported": report.imported,
            "expired": report.expired, "kept": report.kept, "leftOut": report.leftOut, "invalid": report.invalid,
        ]
    }

    /// Stores the position. The file is replaced atomically, so after a crash it has the previous position or this one.
    func save(_ path: String) throws(FileError) {
        var bytes: [UInt8] = []
        text.write(to: &bytes)
        _ = try FileSystem.replace(path, with: bytes + [0x0A])
    }

    /// Reads a stored position.
    /// - Returns: nil if there is no file, or if it is malformed.
    static func read(_ path: String) -> ImportPosition? {
        guard let bytes = try? FileSystem.read(path) else { return nil }
        return bytes.withUnsafeBytes { text -> ImportPosition? in
            guard let members = try? JSONOutline.members(text) else { return nil }
            var places: [String: Range<Int>] = [:]
            for member in members { places[member.name] = member.place }
            func string(_ name: String) -> String? { places[name].flatMap { JSONOutline.string(text, $0) } }
            func number(_ name: String) -> Int? {
                places[name].flatMap { Int(String(decoding: text[$0], as: UTF8.self)) }.flatMap { $0 >= 0 ? $0 : nil }
            }
            guard string("format") == format, number("version") == 1, let larder = string("larder"),
                let header = number("header").flatMap({ UInt32(exactly: $0) }), let options = string("options"),
                let offset = number("offset"), let line = number("line"),
                let tail = number("tail").flatMap({ UInt32(exactly: $0) }), let imported = number("imported"),
                let expired = number("expired"), let kept = number("kept"), let leftOut = number("leftOut"),
                let invalid = number("invalid")
            else { return nil }
            return ImportPosition(
                identity: Identity(header: header, larder: larder, options: options), offset: offset, line: line,
                tail: tail,
                report: Importer.Report(
                    imported: imported, expired: expired, kept: kept, leftOut: leftOut, invalid: invalid))
        }
    }
}
