/// The small file `SEQUENCES` in a larder's directory: the bounds of the reserved numbers.
///
/// It is text, one `name value` a line, the last line the checksum of all before it:
/// ```
/// larder-sequences 2
/// commit-units 4726097177984729088
/// epochs 1700000001025
/// crc32c 0a1b2c3d
/// ```
/// It is replaced by rename, so that a crash leaves the old one or the new one. Version 2 has the same lines, and tells that
/// the larder may have a ``Ledger``, which earlier versions do not know.
package struct SequencesFile: Hashable, Sendable {
    package static let name = "SEQUENCES"
    package static let formatVersion = 2

    /// No commit unit has had a higher sequence.
    package var commitUnits: UInt64
    /// No epoch, and nothing else that is named by such a number, has had a higher one.
    package var epochs: UInt64

    package init(commitUnits: UInt64, epochs: UInt64) {
        self.commitUnits = commitUnits
        self.epochs = epochs
    }

    private static let kind = "larder-sequences"
    private static let names = ["commit-units", "epochs"]

    package var text: String {
        ChecksummedText.text(
            Self.kind, version: Self.formatVersion, [("commit-units", commitUnits), ("epochs", epochs)])
    }

    package typealias Defect = ChecksummedText.Defect

    package init(parsing bytes: [UInt8]) throws(Defect) {
        let text = try ChecksummedText(parsing: bytes, kind: Self.kind, names: [Self.names, Self.names])
        guard let units = UInt64(text.values[0]), let epochs = UInt64(text.values[1]) else {
            throw .malformed("'commit-units' or 'epochs' is out of its range")
        }
        self.init(commitUnits: units, epochs: epochs)
    }
}
