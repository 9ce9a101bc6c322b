import LarderLevelDB
import LarderLevelDBSalvage
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of random damage in any file. Every entry that is found must be right, and every lost entry must be reported.
@Suite struct SalvageDamageTests {
    enum Kind: CaseIterable {
        case flip, zeroPage, garbageSector, cut, remove, swap
    }

    /// The number of damaged databases that are read: 100, multiplied by LARDER_ROUNDS.
    static var rounds: Int { 100 * (TestSetting.rounds.number() ?? 1) }

    @Test(arguments: [
        Options(writeBufferBytes: 64 << 10),
        Options(compression: .none, bloomBitsPerKey: 10, writeBufferBytes: 64 << 10, blockBytes: 1024),
    ])
    func damageNeverReturnsOlderValuesOrLosesKeysSilently(options: Options) throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        let history = try SalvageHistory.usual(seed: random.next(), options: options)
        let files = try history.files()
        let names = files.keys.filter { $0 != "LOCK" && $0 != "LOG" && $0 != "LOG.old" }.sorted()
        var salvage = SalvageOptions()
        salvage.syncedLogBytes = try history.synced()
        var given = 0
        for round in 0..<Self.rounds {
            salvage.batchesAreSorted = random.below(2) == 0
            var damaged: [String: [UInt8]?] = [:]
            var text = "seed \(seed), round \(round):"
            for _ in 0...random.below(2) {
                let name = names[random.below(names.count)]
                guard let bytes = damaged[name] ?? files[name] else { continue }
                let kind = try #require(Kind.allCases.randomElement(using: &random))
                damaged[name] = Self.damage(bytes, kind, &random, other: files[names[random.below(names.count)]] ?? [])
                text += " \(kind) of \(name)"
            }
            for (name, bytes) in damaged {
                if let bytes { try history.replace(name, bytes) } else { unlink("\(history.path)/\(name)") }
            }
            let outcome = try SalvageOutcome(path: history.path, options: salvage)
            let filesAreThere = damaged.allSatisfy { name, bytes in
                !name.hasSuffix(".ldb") && !name.hasSuffix(".log") || bytes != nil && !text.contains("swap of \(name)")
            }
            outcome.check(against: history, filesAreThere: filesAreThere, text)
            given += outcome.entries.count
            for name in damaged.keys { try history.replace(name, try #require(files[name])) }
        }
        #expect(given > 0)
    }

    /// Returns the damaged bytes; nil if the file is to be removed.
    static func damage(_ bytes: [UInt8], _ kind: Kind, _ random: inout SeededGenerator, other: [UInt8]) -> [UInt8]? {
        var damaged = bytes
        guard !bytes.isEmpty else { return damaged }
        let place = random.below(bytes.count)
        switch kind {
        case .flip: damaged[place] ^= 1 << UInt8(random.below(8))
        case .zeroPage:
            let page = place & ~4095
            for offset in page..<min(page + 4096, bytes.count) { damaged[offset] = 0 }
        case .garbageSector:
            let sector = place & ~511
            for offset in sector..<min(sector + 512, bytes.count) {
                damaged[offset] = UInt8(truncatingIfNeeded: random.next())
            }
        case .cut: damaged.removeLast(bytes.count - place)
        case .remove: return nil
        case .swap: return random.below(4) == 0 ? other : damaged
        }
        return damaged
    }
}
