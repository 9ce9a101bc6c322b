import CLarderCRC32C
import LarderJSONCoding
import LarderPlatform

/// How far an import of a file has come: kept in `FILE.position` beside it until it is complete.
///
/// It counts only what the daemon has acknowledged. It belongs to one file, one larder and one set of options: all of that
/// is compared before it is used, and else the import begins anew, which stores nothing older over anything newer.
struct ImportPosition: Equatable {
    /// What the import does with which file.
    struct Identity: Equatable {
        /// The digest of the file's first line, which has the time when the export was begun.
        var header: UInt32
        /// The directory of the larder to which it goes.
        var larder: String
        /// The options that choose what is stored where.
        var options: String
    }

    var identity: Identity
    /// Where the last line ends that is done, and its number.
    var offset: Int
    var line: Int
    /// The digest of what stands before that, up to ``tailBytes``.
    var tail: UInt32
    var report = Importer.Report()

    private static let format = "larder-import-position"
    private static let tailBytes = 4096

    static func digest(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        larder_crc32c_extend(0, bytes.baseAddress, bytes.count)
    }

    /// The digest of what stands before an offset of a file; nil if there is less.
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

    // MARK: Its file

    private var text: JSONText {
        .object([
            ("format", .text(Self.format)), ("version", .integer(1)), ("header", .integer(Int64(identity.header))),
            ("larder", .text(identity.larder)), ("options", .text(identity.options)),
            ("offset", .integer(Int64(offset))),
            ("line", .integer(Int64(line))), ("tail", .integer(Int64(tail))),
            ("imported", .integer(Int64(report.imported))), ("expired", .integer(Int64(report.expired))),
            ("kept", .integer(Int64(report.kept))), ("leftOut", .integer(Int64(report.leftOut))),
            ("invalid", .integer(Int64(report.invalid))),
        ])
    }

    /// Replaces the file: a crash leaves the former position or this one.
    func save(_ path: String) throws(FileError) {
        var bytes: [UInt8] = []
        text.write(to: &bytes)
        _ = try FileSystem.replace(path, with: bytes + [0x0A])
    }

    /// Reads a position.
    /// - Returns: nil if there is none, or the file is something else.
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
