import LarderLevelDBFormat

/// The content of a manifest, up to its first damage.
struct ManifestContents {
    var scan = ManifestScan(number: 0)
    /// The locations of wrong bits that were corrected. The edits are used, because they are valid after the
    /// correction.
    var repaired: [LogHole] = []
    /// The damage at which reading stopped; nil if the whole file was read.
    var damage: LogHole?
    /// Whether the damage is only that the file ends within its last edit. LevelDB had not applied this edit yet.
    var isTorn = false

    static let comparator = "leveldb.BytewiseComparator"
    /// The maximum size of a manifest in bytes: 1 GiB. No valid manifest reaches this limit.
    private static let byteCountMax = 1 << 30

    /// The content that the caller has recorded earlier, as if it had been read from a manifest.
    init(noted scan: ManifestScan) { self.scan = scan }

    /// Reads a manifest.
    init(_ pieces: LogPieces) throws(SalvageError) {
        let (units, _) = try LogAssembler.units(of: pieces, byteCountMax: Self.byteCountMax)
        for (index, unit) in units.enumerated() {
            switch unit {
            case .lost(let hole):
                damage = hole
                isTorn = hole.isTorn && index == units.count - 1
                return
            case .record(let record):
                guard record.isWhole else {
                    damage =
                        record.holes.first?.hole
                        ?? LogHole(
                            offset: record.offset, byteCount: pieces.byteCount - record.offset,
                            reason: "the file ends within an edit", isTorn: true)
                    isTorn = index == units.count - 1 && record.holes.allSatisfy { $0.hole.isTorn }
                    return
                }
                guard scan.apply(record.front) else {
                    damage = LogHole(
                        offset: record.offset, byteCount: record.memory.count, reason: "the record is not an edit")
                    return
                }
                repaired += record.repaired.map(\.hole)
            }
        }
    }
}
