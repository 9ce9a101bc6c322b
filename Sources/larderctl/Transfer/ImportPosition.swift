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

    // The format of the file, and its version. Files of other versions are ignored.
    var format = "larder-import-position"
    var version = 3
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
        var bytes = [UInt8](repeating: 0, count: min(offset, tailBytes))
        guard pread(descriptor, &bytes, bytes.count, off_t(offset - bytes.count)) == bytes.count else { return nil }
        return bytes.withUnsafeBytes { digest($0) }
    }

    static func path(_ file: String) -> String { file + ".position" }

    // MARK: The file

    /// Stores the position. The file is replaced atomically, so after a crash it has the previous position or this one.
    func save(_ path: String) throws { _ = try FileSystem.replace(path, with: try JSONCoder().encode(self) + [0x0A]) }

    /// Reads a stored position.
    /// - Returns: nil if there is no file, or if it is malformed.
    static func read(_ path: String) -> ImportPosition? {
        guard let bytes = try? FileSystem.read(path), let stored = try? JSONCoder().decode(Self.self, from: bytes)
        else { return nil }
        let own = Self(identity: stored.identity, offset: 0, line: 0, tail: 0)
        return stored.format == own.format && stored.version == own.version && stored.offset >= 0 ? stored : nil
    }
}

/// Delays a position until its entries are durable: a power failure may lose entries that the daemon has acknowledged
/// within about the last second.
struct SettlingPosition {
    static let milliseconds: Int64 = 2000

    private var waiting: (position: ImportPosition, since: Int64)?

    /// Takes the position after the entries acknowledged so far.
    /// - Returns: the position to store now; nil if there is none yet.
    mutating func next(_ acknowledged: ImportPosition?, now: Int64) -> ImportPosition? {
        if let waiting, now - waiting.since < Self.milliseconds { return nil }
        defer { waiting = acknowledged.map { ($0, now) } }
        return waiting?.position
    }
}
