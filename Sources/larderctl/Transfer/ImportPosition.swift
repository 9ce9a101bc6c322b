import CLarderCRC32C
import LarderJSONCoding
import LarderPlatform

/// The position of an import in its file. It is stored in `FILE.position` until the import is complete, so that an
/// interrupted import can continue.
///
/// All entries before the position were acknowledged by the daemon. The position is valid only for the same file,
/// larder and options; otherwise the import starts from the beginning, without overwriting newer entries.
struct ImportPosition: Equatable, Codable {
    /// The file, the larder and the options of an import.
    struct Identity: Equatable, Codable {
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

    private struct Stored: Codable {
        var format = "larder-import-position"
        var version = 2
        let position: ImportPosition
    }

    /// Stores the position. The file is replaced atomically, so after a crash it has the previous position or this one.
    func save(_ path: String) throws {
        _ = try FileSystem.replace(path, with: try JSONCoder().encode(Stored(position: self)) + [0x0A])
    }

    /// Reads a stored position.
    /// - Returns: nil if there is no file, or if it is malformed.
    static func read(_ path: String) -> ImportPosition? {
        guard let bytes = try? FileSystem.read(path), let stored = try? JSONCoder().decode(Stored.self, from: bytes)
        else { return nil }
        let (own, position) = (Stored(position: stored.position), stored.position)
        return stored.format == own.format && stored.version == own.version && position.offset >= 0 ? position : nil
    }
}
