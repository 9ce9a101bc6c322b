import LarderPlatform

extension ManifestScan {
    /// Removes tables from a database that is not open, by appending one edit to LevelDB's manifest. This takes only a
    /// few bytes per table. When LevelDB opens, it deletes the files that the manifest no longer names. Syncs the
    /// manifest. After an error it is either unchanged, or ends with an incomplete record, which LevelDB ignores.
    ///
    /// The entries in these tables are then lost. If a lower level still has an older version of such an entry, that
    /// version becomes visible again. So first select the tables to remove with
    /// ``removable(from:before:behind:start:where:)``.
    /// - Parameter numbers: the numbers of tables in this manifest, which must be the one that the directory's
    ///   `CURRENT` names now.
    package func appendRemoval(of numbers: [UInt64], in directory: String) throws(FileError) {
        let path = directory + "/" + FileNames.manifest(number)
        var edit: [UInt8] = []
        for number in numbers {
            guard let table = tables[number] else { continue }
            Self.append(Tag.deletedFile.rawValue, to: &edit)
            Self.append(UInt64(table.level), to: &edit)
            Self.append(number, to: &edit)
        }
        // Remove an incomplete record that LevelDB may have left at the end when it failed.
        try FileSystem.truncate(path, to: log.goodBytes)
        try FileSystem.appendFile(path, LogScan.encode(edit, at: log.goodBytes))
    }

    private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Selects tables that may be removed together. Protects the keys from `first` up to but not including `end`: if a
    /// selected table has such a key, all lower tables that may have this key are selected too. So no older version
    /// becomes visible. For other keys, entries may be lost, or older versions may become visible.
    ///
    /// Begins with the lowest level. In level 0, whose tables overlap, begins with the oldest table. Does not select
    /// tables without keys in the range, or tables that overlap an older table that was not selected.
    /// - Parameters:
    ///   - needed: a key that must not be removed. Only tables whose first key is greater are selected.
    ///   - start: receives the number of table groups in a level, and returns the index of the first group to try. The
    ///     other groups are tried after it, in order.
    ///   - takes: receives a group of tables that can only be removed together, and returns whether to remove it.
    ///     Called in the order of removal.
    package func removable(
        from first: [UInt8], before end: [UInt8], behind needed: [UInt8], start: (Int) -> Int = { _ in 0 },
        where takes: ([(number: UInt64, table: Table)]) -> Bool
    ) -> [(number: UInt64, table: Table)] {
        guard !hasUnknownEdit else { return [] }
        var taken: [(number: UInt64, table: Table)] = []
        /// The tables of this level and of lower levels that are not removed.
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

    /// Returns the tables of a level that have keys at or after `first` and before `end`, in groups. Adjacent tables
    /// that may have versions of the same key form a group: if only one of them were removed, an older version might
    /// become visible. In level 0 each table is a group, the oldest first.
    private func groups(_ level: Int, _ first: [UInt8], _ end: [UInt8]) -> [[(number: UInt64, table: Table)]] {
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
    /// Whether the two tables may have versions of the same key at or after `first`.
    fileprivate func overlaps(_ other: Self, _ first: [UInt8]) -> Bool {
        let start = [self.first, other.first, first[...]].max { $0.lexicographicallyPrecedes($1) } ?? first[...]
        return !last.lexicographicallyPrecedes(start) && !other.last.lexicographicallyPrecedes(start)
    }
}
