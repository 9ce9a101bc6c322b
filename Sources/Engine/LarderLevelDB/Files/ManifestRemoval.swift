import LarderPlatform

/// Removes tables from a LevelDB that is not open, by appending one edit to its manifest: a few bytes for each table.
/// When LevelDB opens, it removes files that its manifest does not name.
///
/// The content of the tables is then lost, and older versions that they hid in lower tables become visible again. So
/// only tables that hide nothing may be removed: ``ManifestScan/removable(from:before:behind:start:where:)``.
package enum ManifestRemoval {
    /// Appends the edit, and syncs it. After an error the manifest is either unchanged, or ends within an invalid
    /// record.
    /// - Parameter numbers: the numbers of tables in `manifest`, which must be the manifest that the directory's
    ///   `CURRENT` names now.
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
        // Removes the incomplete record that was being written when LevelDB failed.
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
    /// Returns tables that may be removed together. For each of their keys at or after `first` and before `end`, the
    /// tables below that have the key are removed too, so that no previous version becomes visible. For keys outside of
    /// this range, entries may be lost, or previous versions may become visible.
    ///
    /// Starts at the lowest level. In level 0, whose tables overlap, the oldest table comes first. Tables without keys
    /// in the range stay, and so do tables above a table that stays.
    /// - Parameters:
    ///   - needed: a key that must stay. Tables whose first key is not greater stay.
    ///   - start: receives the number of table groups in a level, and returns the index of the first one to try. The
    ///     next ones follow in order.
    ///   - takes: whether to remove these tables, which are removed together or not at all. Called in the order of
    ///     removal.
    package func removable(
        from first: [UInt8], before end: [UInt8], behind needed: [UInt8], start: (Int) -> Int = { _ in 0 },
        where takes: ([(number: UInt64, table: Table)]) -> Bool
    ) -> [(number: UInt64, table: Table)] {
        guard !isStrange else { return [] }
        var taken: [(number: UInt64, table: Table)] = []
        /// The tables of this level and of lower levels that stay.
        var kept: [Table] = []
        for level in Set(tables.values.map(\.level)).sorted(by: >) {
            let groups = groups(level, first, end)
            let place = level == 0 || groups.isEmpty ? 0 : start(groups.count)
            for index in groups.indices {
                let group = groups[(place + index) % groups.count]
                let isFree = group.allSatisfy { member in
                    Self.precedes(needed[...], member.table.first)
                        && !kept.contains { $0.overlaps(member.table, first) }
                }
                if isFree, takes(group) { taken += group } else { kept += group.map(\.table) }
            }
        }
        return taken
    }

    /// The tables of a level that have keys at or after `first` and before `end`, in groups. Adjacent tables that may
    /// have versions of the same key are one group, because the newer table hides the older versions. In level 0 each
    /// table is a group, the oldest first.
    private func groups(_ level: UInt64, _ first: [UInt8], _ end: [UInt8]) -> [[(number: UInt64, table: Table)]] {
        let all = tables.filter { $0.value.level == level && !Self.precedes($0.value.last, first) }
            .filter { Self.precedes($0.value.first, end) }
            .map { (number: $0.key, table: $0.value) }
        if level == 0 { return all.sorted { $0.number < $1.number }.map { [$0] } }
        var groups: [[(number: UInt64, table: Table)]] = []
        for member in all.sorted(by: { Self.precedes($0.table.first, $1.table.first) }) {
            if let before = groups.last?.last?.table.last, !Self.precedes(before, member.table.first) {
                groups[groups.count - 1].append(member)
            } else {
                groups.append([member])
            }
        }
        return groups
    }

    private static func precedes(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
        left.lexicographicallyPrecedes(right)
    }

    private static func precedes(_ left: ArraySlice<UInt8>, _ right: [UInt8]) -> Bool {
        left.lexicographicallyPrecedes(right)
    }
}

extension ManifestScan.Table {
    /// The table's first and last user key: without the eight bytes that LevelDB adds.
    package var first: ArraySlice<UInt8> { smallest.dropLast(8) }
    package var last: ArraySlice<UInt8> { largest.dropLast(8) }

    /// Whether both tables may have versions of the same key at or after `first`.
    fileprivate func overlaps(_ other: Self, _ first: [UInt8]) -> Bool {
        let start = [self.first, other.first, first[...]].max { $0.lexicographicallyPrecedes($1) } ?? first[...]
        return !last.lexicographicallyPrecedes(start) && !other.last.lexicographicallyPrecedes(start)
    }
}
