import CLarderCRC32C
import LarderLevelDB
import LarderLevelDBSalvage
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of damage in tables. Two hundred keys have the value "old" in a table of a deep level, and "new" in a table of
/// level 0. A few of them also have "newest" in the log.
@Suite struct SalvageTableTests {
    let workspace: Workspace
    let deep: String
    let upper: String
    let pristine: [String: [UInt8]]
    static let newest = [0, 57, 100, 150, 199]

    init() throws {
        let options = Options(compression: .none, bloomBitsPerKey: 10)
        workspace = try Workspace(options)
        for name in ["old", "new"] {
            let batch = WriteBatch()
            for number in 0..<200 { batch.put(key(number), Self.value(name, number)) }
            try workspace.database.write(batch)
            if name == "old" { try workspace.database.compact() }
            try workspace.reopen(options)
        }
        for number in Self.newest { try workspace.database.put(key(number), Self.value("newest", number)) }
        try workspace.database.close()
        let tables = try workspace.files(endingWith: ".ldb")
        try #require(tables.count == 2)
        (deep, upper) = (tables[0], tables[1])
        var pristine: [String: [UInt8]] = [:]
        for name in try workspace.files() { pristine[name] = try Files.read("\(workspace.path)/\(name)") }
        self.pristine = pristine
    }

    static func value(_ name: String, _ number: Int) -> [UInt8] {
        bytes("\(name) \(number) ") + [UInt8](repeating: 0x2e, count: 300)
    }

    private func name(_ value: [UInt8]?) -> String? {
        value.map { String(decoding: $0.prefix { $0 != 0x20 }, as: UTF8.self) }
    }

    private func damage(_ table: String, _ change: (inout [UInt8]) -> Void) throws -> SalvageOutcome {
        var bytes = try #require(pristine[table])
        change(&bytes)
        try Files.write("\(workspace.path)/\(table)", bytes)
        return try SalvageOutcome(path: workspace.path)
    }

    /// Returns the position of a key's value in a table.
    private func place(of number: Int, in table: String) throws -> Int {
        let bytes = try #require(pristine[table])
        let value = Self.value(table == deep ? "old" : "new", number)
        return try #require(bytes.indices.first { bytes[$0...].starts(with: value) })
    }

    /// Checks that keys that are in the log have the log's values, and that no older value is returned.
    private func check(_ outcome: SalvageOutcome, lost: ClosedRange<Int>?) throws {
        for number in 0..<200 {
            let expected: String? =
                Self.newest.contains(number) ? "newest" : lost?.contains(number) ?? false ? nil : "new"
            #expect(name(outcome.entries[key(number)]) == expected, "\(number), lost \(outcome.report.lost)")
            let isLost = outcome.report.lost.contains { $0.contains(key(number)) }
            #expect(isLost == (lost?.contains(number) ?? false), "\(number), lost \(outcome.report.lost)")
        }
    }

    private func hull(_ outcome: SalvageOutcome) -> ClosedRange<Int>? {
        let lost = (0..<200).filter { number in outcome.report.lost.contains { $0.contains(key(number)) } }
        guard let first = lost.first, let last = lost.last else { return nil }
        return first...last
    }

    @Test func aDamagedBlockLosesItsKeysWithoutReturningOlderValues() throws {
        let place = try place(of: 100, in: upper)
        let outcome = try damage(upper) { $0[place] ^= 1 }
        let lost = try #require(hull(outcome))
        #expect(lost.contains(100) && lost.count < 20)
        try check(outcome, lost: lost)
        let damage = try #require(outcome.report.damages.first)
        #expect(outcome.report.damageCount == 1 && damage.part == .dataBlock && damage.file == upper)
        #expect(damage.reason == "checksum mismatch" && damage.offset <= place)
        #expect(outcome.report.bytesLost == damage.byteCount && place < damage.offset + damage.byteCount)
        #expect(outcome.report.lost == [try #require(damage.range)])
        #expect(outcome.report.withheld == lost.filter { !Self.newest.contains($0) }.count)
        #expect(outcome.report.isComplete)
    }

    @Test func aDamagedBlockLosesNoValuesThatWereOverwrittenLater() throws {
        let place = try place(of: 100, in: deep)
        let outcome = try damage(deep) { $0[place] ^= 1 }
        #expect(outcome.entries.count == 200 && outcome.report.withheld == 0)
        #expect(outcome.entries.allSatisfy { name($0.value) != "old" })
        // The damage is reported as a loss anyway: the block may have had a key that was never written again.
        #expect(outcome.report.damages.first?.part == .dataBlock && outcome.report.lost.count == 1)
    }

    @Test("lost ranges of the first and last block end at the table's ends")
    func theFirstAndTheLastBlockReachToTheTablesOwnEnds() throws {
        for number in [0, 199] {
            let place = try place(of: number, in: upper)
            let outcome = try damage(upper) { $0[place + 20] ^= 0x10 }
            let lost = try #require(hull(outcome))
            #expect(lost.contains(number) && lost.count < 20)
            try check(outcome, lost: lost)
            let range = try #require(outcome.report.lost.first)
            #expect(number == 0 ? range.lower == key(0) : range.upper == key(199) + [0])
        }
    }

    @Test func aFlippedBitInATablesIndexOrFooterLosesNoEntries() throws {
        let bytes = try #require(pristine[upper])
        for place in [bytes.count - 60, bytes.count - 300, bytes.count - 1, bytes.count - 7, bytes.count - 47] {
            let outcome = try damage(upper) { $0[place] ^= 4 }
            #expect(outcome.report.lost.isEmpty, "\(bytes.count - place): \(outcome.report)")
            #expect(outcome.report.damages.allSatisfy { $0.range == nil } && outcome.report.damageCount == 1)
            #expect(!outcome.report.isUndamaged)
            try check(outcome, lost: nil)
        }
    }

    @Test func aTableWithoutItsIndexOrFooterLosesNoEntries() throws {
        let bytes = try #require(pristine[upper])
        let index = bytes.count - 48 - 100
        let outcomes = [
            try damage(upper) { for place in index..<(index + 40) { $0[place] = 0 } },
            try damage(upper) { for place in (bytes.count - 48)..<bytes.count { $0[place] = 0xFF } },
            try damage(upper) { $0.removeLast() },
            try damage(upper) { $0.removeLast(48 + 300) },
        ]
        for outcome in outcomes {
            try check(outcome, lost: nil)
            #expect(outcome.report.lost.isEmpty && outcome.report.damageCount == 1 && !outcome.report.isUndamaged)
        }
        #expect(outcomes.map { $0.report.damages[0].part } == [.index, .footer, .table, .table])
    }

    @Test func aTableThatIsCutShortLosesTheKeysAfterItsLastWholeBlock() throws {
        let place = try place(of: 100, in: upper)
        for change: (inout [UInt8]) -> Void in [
            { $0.removeLast($0.count - place) },
            { for place in place..<$0.count { $0[place] = 0 } },
            // The index is unreadable, and a block is damaged.
            {
                $0[place] ^= 1
                $0.removeLast(48)
            },
        ] {
            let outcome = try damage(upper, change)
            let lost = try #require(hull(outcome))
            #expect((81...100).contains(lost.lowerBound) && lost.upperBound == 199, "\(outcome.report)")
            try check(outcome, lost: lost)
            #expect(outcome.report.damageCount == 1 && outcome.report.lost == [outcome.report.damages[0].range])
            #expect(outcome.report.withheld == lost.count { !Self.newest.contains($0) })
        }
    }

    @Test func anUnreadableTableLosesItsWholeKeyRange() throws {
        let outcomes = [
            try damage(upper) { $0 = [] },
            // The first block is damaged, and the index is unreadable.
            try damage(upper) {
                $0[100] ^= 1
                $0.removeLast(48)
            },
            // The file has the contents of another table.
            try damage(upper) { $0 = pristine[deep] ?? [] },
        ]
        for outcome in outcomes {
            try check(outcome, lost: 0...199)
            #expect(outcome.report.lost == [LarderLevelDBSalvage.KeyRange(lower: key(0), upper: key(199) + [0])])
            #expect(outcome.report.damageCount == 1 && outcome.report.damages[0].part == .table)
        }
        unlink("\(workspace.path)/\(upper)")
        let outcome = try SalvageOutcome(path: workspace.path)
        try check(outcome, lost: 0...199)
        #expect(outcome.report.damages.map(\.reason) == ["the file is missing"])
        mkdir("\(workspace.path)/\(upper)", 0o700)
        #expect(try SalvageOutcome(path: workspace.path).report.damages.map(\.reason) == ["it is not a file"])
    }

    @Test func aDamagedFilterIsReportedAndLosesNoEntries() throws {
        let bytes = try #require(pristine[upper])
        let name = LarderLevelDBTests.bytes("filter.leveldb.BuiltinBloomFilter2")
        let meta = try #require(bytes.indices.first { bytes[$0...].starts(with: name) })
        for place in [meta, meta - 20] {
            let outcome = try damage(upper) { $0[place] ^= 1 }
            try check(outcome, lost: nil)
            #expect(outcome.report.damages.map(\.part) == [.filter] && outcome.report.lost.isEmpty)
        }
    }

    @Test("two damaged blocks are reported as two lost ranges") func twoDamagesAreTwoRanges() throws {
        let (first, second) = (try place(of: 20, in: upper), try place(of: 170, in: upper))
        let outcome = try damage(upper) { bytes in
            for place in [first, second] { bytes[place] ^= 1 }
        }
        #expect(outcome.report.damageCount == 2 && outcome.report.lost.count == 2)
        for number in [20, 170] { #expect(outcome.entries[key(number)] == nil) }
        #expect(name(outcome.entries[key(90)]) == "new")
    }

    /// The log removes a key whose block in a table is damaged. The key is reported as removed, not as lost.
    @Test func aKeyRemovedAfterTheDamagedValueIsReportedAsRemoved() throws {
        try workspace.reopen()
        try workspace.database.delete(key(101))
        try workspace.database.close()
        let tables = try workspace.files(endingWith: ".ldb")
        let place = try place(of: 100, in: upper)
        try #require(tables.contains(upper))
        let outcome = try damage(upper) { $0[place] ^= 1 }
        #expect(outcome.removed == [key(101)] && outcome.report.removals == 1)
    }

    @Test func ignoredKeysAreNeitherReturnedNorReportedAsLost() throws {
        var options = SalvageOptions()
        options.ignoredFirstBytes = [UInt8(ascii: "k")]
        let place = try place(of: 100, in: upper)
        _ = try damage(upper) { $0[place] ^= 1 }
        let outcome = try SalvageOutcome(path: workspace.path, options: options)
        #expect(outcome.entries.isEmpty && outcome.report.lost.isEmpty && outcome.report.isUndamaged)
    }

    /// A block with a correct checksum whose stated size is larger than possible.
    @Test func aBlockWithAnImpossibleSizeIsDamage() throws {
        for claim: [UInt8] in [[0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [0x80, 0x80, 0x80, 0x80, 0x04], [0xFF], []] {
            let outcome = try damage(upper) { bytes in
                // Replaces the first block by a Snappy block of the same length. A Snappy block begins with its
                // uncompressed size, here `claim`.
                guard let count = Self.firstBlockBytes(bytes) else { return }
                var block = claim + [UInt8](repeating: 0, count: count - claim.count) + [1]
                var checksum = block.withUnsafeBytes { larder_crc32c_extend(0, $0.baseAddress, $0.count) }
                checksum = (checksum >> 15 | checksum << 17) &+ 0xA282_EAD8
                withUnsafeBytes(of: checksum.littleEndian) { block += Array($0) }
                bytes.replaceSubrange(0..<block.count, with: block)
            }
            let damage = try #require(outcome.report.damages.first)
            #expect(damage.part == .dataBlock && damage.offset == 0, "\(damage)")
            #expect(outcome.entries[key(1)] == nil && name(outcome.entries[key(199)]) == "newest")
        }
    }

    /// Returns the length of the first block without its type and checksum. Searches for the position at which the
    /// checksum is right.
    private static func firstBlockBytes(_ bytes: [UInt8]) -> Int? {
        var checksum: UInt32 = 0
        for count in 1..<(bytes.count - 4) {
            checksum = bytes[(count - 1)..<count].withUnsafeBytes { larder_crc32c_extend(checksum, $0.baseAddress, 1) }
            let masked = (checksum >> 15 | checksum << 17) &+ 0xA282_EAD8
            if withUnsafeBytes(of: masked.littleEndian, { Array($0) }) == Array(bytes[count..<(count + 4)]) {
                return count - 1
            }
        }
        return nil
    }
}
