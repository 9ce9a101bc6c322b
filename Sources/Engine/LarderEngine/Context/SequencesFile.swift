import LarderPlatform

/// The small file `SEQUENCES` in a larder's directory: the bounds of the reserved numbers, and the existing databases.
///
/// It is text, with a name and a value in each line; the last line is the checksum of all previous lines:
/// ```
/// larder-sequences 3
/// commit-units 4726097177984729088
/// epochs 1700000001025
/// databases LEDGER books
/// crc32c 0a1b2c3d
/// ```
/// A new file replaces the old one by rename, so that a crash leaves one of them intact. Versions 1 and 2 have no line
/// `databases`; since version 2 the larder may have a ``Ledger``.
package struct SequencesFile: Hashable, Sendable {
    package static let name = "SEQUENCES"
    package static let formatVersion = 3
    /// The length of the longest file that is read, in bytes. A valid file is shorter, even with the maximum number of
    /// databases and the longest names.
    package static let bytesMax = 1 << 20

    /// An upper bound of the sequences of all commit units so far.
    package var commitUnits: UInt64
    /// An upper bound of the numbers of all epochs so far, and of the numbers in other files' names.
    package var epochs: UInt64
    /// The databases that have directories, including the ledger.
    package var databases: Set<String>

    package init(commitUnits: UInt64, epochs: UInt64, databases: Set<String> = []) {
        self.commitUnits = commitUnits
        self.epochs = epochs
        self.databases = databases
    }

    private static let kind = "larder-sequences"
    private static let names = ["commit-units", "epochs"]
    /// The value of `databases` if there are none.
    private static let none = "-"

    package var text: String {
        ChecksummedText.text(
            Self.kind, version: Self.formatVersion,
            [
                ("commit-units", commitUnits), ("epochs", epochs),
                ("databases", databases.isEmpty ? Self.none : databases.sorted().joined(separator: " ")),
            ])
    }

    package typealias Defect = ChecksummedText.Defect

    package init(parsing bytes: [UInt8]) throws(Defect) {
        let latest = Self.names + ["databases"]
        let text = try ChecksummedText(parsing: bytes, kind: Self.kind, names: [Self.names, Self.names, latest])
        guard let units = UInt64(text.values[0]), let epochs = UInt64(text.values[1]) else {
            throw .malformed("'commit-units' or 'epochs' is out of range")
        }
        let names = text.version < 3 ? [] : text.values[2].split(separator: " ").map(String.init)
        self.init(commitUnits: units, epochs: epochs, databases: Set(names).subtracting([Self.none]))
    }

    /// Reads the file in a larder's directory; nil if it does not exist.
    static func read(in directory: String) throws -> SequencesFile? {
        try FileSystem.read(directory + "/" + name, bytesMax: bytesMax).map { try SequencesFile(parsing: $0) }
    }
}
