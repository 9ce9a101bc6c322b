/// The small file `SEQUENCES` in a larder's directory: the bounds of the reserved numbers.
///
/// It is text, one `name value` a line, the last line the checksum of all before it:
/// ```
/// larder-sequences 1
/// commit-units 4726097177984729088
/// epochs 1700000001025
/// crc32c 0a1b2c3d
/// ```
/// It is replaced by rename, so that a crash leaves the old one or the new one.
package struct SequencesFile: Hashable, Sendable {
    package static let name = "SEQUENCES"
    package static let formatVersion = 1

    /// No commit unit has had a higher sequence.
    package var commitUnits: UInt64
    /// No epoch, and nothing else that is named by such a number, has had a higher one.
    package var epochs: UInt64

    package init(commitUnits: UInt64, epochs: UInt64) {
        self.commitUnits = commitUnits
        self.epochs = epochs
    }

    package var text: String {
        let body = """
            larder-sequences \(Self.formatVersion)
            commit-units \(commitUnits)
            epochs \(epochs)

            """
        return body + CRC32C.line(of: body)
    }

    package enum Defect: Error, Equatable {
        case newerFormat(Int)
        case malformed(String)
    }

    package init(parsing bytes: [UInt8]) throws(Defect) {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .malformed("it is not text") }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let fields = lines.map { $0.split(separator: " ", maxSplits: 1) }
        guard let first = fields.first, first.count == 2, first[0] == "larder-sequences", let version = Int(first[1])
        else { throw .malformed("the first line is not 'larder-sequences' and a version") }
        guard version >= 1 else { throw .malformed("there is no version \(version)") }
        // A newer layout may have other lines: nothing else is read from it.
        guard version <= Self.formatVersion else { throw .newerFormat(version) }
        guard lines.count == 5, lines[4].isEmpty else { throw .malformed("it has not four lines") }
        let body = lines[0..<3].map { $0 + "\n" }.joined()
        guard lines[3] + "\n" == CRC32C.line(of: body) else {
            throw .malformed("the checksum does not match")
        }
        guard fields[1].count == 2, fields[1][0] == "commit-units", let units = UInt64(fields[1][1]),
            fields[2].count == 2, fields[2][0] == "epochs", let epochs = UInt64(fields[2][1])
        else { throw .malformed("'commit-units' or 'epochs' is missing or out of its range") }
        self.init(commitUnits: units, epochs: epochs)
    }
}
