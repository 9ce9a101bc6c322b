import Platform

/// Takes tables out of a LevelDB that nobody has open, by one more edit at the end of its manifest: a few bytes for each
/// table. LevelDB removes files that its manifest does not name when it opens.
///
/// What the tables have is gone then, and what they hid in tables below comes back. So only tables may go that hide
/// nothing: ``ManifestScan/lowestTables(from:before:)``.
package enum ManifestRemoval {
    /// Appends the edit, and syncs it. After an error the manifest is as it was, or ends within a record that does not
    /// count.
    /// - Parameter numbers: of tables in `manifest`, which must be what the directory's `CURRENT` names now.
    package static func append(
        _ numbers: [UInt64], to manifest: ManifestScan, directory: String
    ) throws(FileError) {
        let digits = "\(manifest.number)"
        let name = "MANIFEST-" + String(repeating: "0", count: max(0, 6 - digits.count)) + digits
        var edit: [UInt8] = []
        for number in numbers {
            guard let table = manifest.tables[number] else { continue }
            edit.append(6)  // a removed table
            append(table.level, to: &edit)
            append(number, to: &edit)
        }
        // What was being written when LevelDB failed.
        try FileSystem.truncate(directory + "/" + name, to: manifest.log.goodBytes)
        try FileSystem.appendFile(directory + "/" + name, LogScan.encode(edit, at: manifest.log.goodBytes))
    }

    private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

extension ManifestScan {
    /// The tables that have only keys from `first` to before `end`, and below which no table has any of their keys: of
    /// the lowest level that has such tables, in the order of their keys. Level 0, whose tables overlap, is left out.
    package func lowestTables(from first: [UInt8], before end: [UInt8]) -> [(number: UInt64, table: Table)] {
        guard !isStrange else { return [] }
        /// What stays in lower levels.
        var below: [Table] = []
        for level in Set(tables.values.map(\.level)).filter({ $0 > 0 }).sorted(by: >) {
            let all = tables.filter { $0.value.level == level && !Self.precedes($0.value.last, first) }
                .filter { Self.precedes($0.value.first, end) }
                .sorted { Self.precedes($0.value.first, $1.value.first) }
            let found = all.indices.filter { index in
                let table = all[index].value
                // Versions of one key may be in two tables that are neighbours: the newer one hides the older.
                let isApart =
                    (index == 0 || Self.precedes(all[index - 1].value.last, table.first))
                    && (index + 1 == all.count || Self.precedes(table.last, all[index + 1].value.first))
                return isApart && !Self.precedes(table.first, first) && Self.precedes(table.last, end)
                    && !below.contains { !Self.precedes($0.last, table.first) && !Self.precedes(table.last, $0.first) }
            }
            if !found.isEmpty { return found.map { (all[$0].key, all[$0].value) } }
            below += all.map(\.value)
        }
        return []
    }

    private static func precedes(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
        left.lexicographicallyPrecedes(right)
    }

    private static func precedes(_ left: ArraySlice<UInt8>, _ right: [UInt8]) -> Bool {
        left.lexicographicallyPrecedes(right)
    }
}

extension ManifestScan.Table {
    /// The user's first and last key: without the eight bytes that LevelDB adds.
    package var first: ArraySlice<UInt8> { smallest.dropLast(8) }
    package var last: ArraySlice<UInt8> { largest.dropLast(8) }
}
