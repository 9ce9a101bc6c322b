/// Parses the names of LevelDB's files.
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
}
