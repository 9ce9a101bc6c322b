import LarderPlatform

/// The names of LevelDB's files.
package enum FileNames {
    package static let current = "CURRENT"

    /// Returns the number of a log, `NNNNNN.log`; nil for any other name.
    package static func logNumber(_ name: String) -> UInt64? {
        guard name.hasSuffix(".log") else { return nil }
        return number(name.dropLast(4))
    }

    /// Returns the number of a manifest, `MANIFEST-NNNNNN`; nil for any other name.
    package static func manifestNumber(_ name: String) -> UInt64? {
        guard name.hasPrefix("MANIFEST-") else { return nil }
        return number(name.dropFirst(9))
    }

    /// Returns the number of a table, `NNNNNN.ldb` or, from old versions of LevelDB, `NNNNNN.sst`; nil for any other
    /// name.
    package static func tableNumber(_ name: String) -> UInt64? {
        guard name.hasSuffix(".ldb") || name.hasSuffix(".sst") else { return nil }
        return number(name.dropLast(4))
    }

    private static func number(_ text: Substring) -> UInt64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
        return UInt64(text)
    }

    // The names that LevelDB gives to its files.
    package static func log(_ number: UInt64) -> String { number.zeroPadded(6) + ".log" }
    package static func manifest(_ number: UInt64) -> String { "MANIFEST-" + number.zeroPadded(6) }
    package static func table(_ number: UInt64) -> String { number.zeroPadded(6) + ".ldb" }
    /// The name of a table in old versions of LevelDB.
    package static func oldTable(_ number: UInt64) -> String { number.zeroPadded(6) + ".sst" }

    /// Whether a file may contain data: a table, a log, or a manifest other than the first. The first manifest has no
    /// data, because LevelDB writes it before `CURRENT` when it creates a database. A database that was ever open also
    /// has a log or a later manifest.
    package static func mayHoldData(_ name: String) -> Bool {
        (tableNumber(name) ?? logNumber(name)) != nil || name != manifest(1) && manifestNumber(name) != nil
    }

    /// The longest content of `CURRENT` that must be read, in bytes: more than the name of any manifest has.
    package static let currentBytesMax = 64

    /// Returns the name of the manifest in the content of `CURRENT`; nil if that is not exactly such a name and a
    /// newline.
    package static func manifest(inCurrent bytes: some BidirectionalCollection<UInt8>) -> String? {
        guard bytes.last == UInt8(ascii: "\n"), let name = String(validating: bytes.dropLast(), as: UTF8.self),
            manifestNumber(name) != nil
        else { return nil }
        return name
    }
}
