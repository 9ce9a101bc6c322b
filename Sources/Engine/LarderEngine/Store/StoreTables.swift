import LarderLevelDBFormat
import LarderPlatform

/// The tables that a store's LevelDB uses according to its manifest. Excludes tables that LevelDB is still writing or
/// no longer needs. Each call reads what LevelDB has added to the manifest since the previous call.
///
/// Thread-safe.
final class StoreTables: Sendable {
    /// The disk space of all tables, and the maximum number of bytes that LevelDB could merge in one step.
    typealias Sizes = (bytes: Int, largestMerge: Int)
    private typealias State = (manifest: ManifestScan?, sizes: Sizes)

    private let path: String
    private let state = Locked<State>((nil, (0, 0)))

    init(path: String) { self.path = path }

    /// Returns the current sizes; nil if the manifest cannot be read.
    func measure() -> Sizes? {
        state.withLock { update(&$0) == nil ? nil : $0.sizes }
    }

    /// Returns ascending keys between `from` and `to` that divide this range into parts with about `bytes` bytes of
    /// tables each.
    func cuts(from: [UInt8], to: [UInt8], every bytes: Int) -> [[UInt8]] {
        let tables = state.withLock { update(&$0)?.tables.values.map { $0 } ?? [] }
        let within = tables.filter {
            from[...].lexicographicallyPrecedes($0.first) && $0.first.lexicographicallyPrecedes(to[...])
        }
        var cuts: [[UInt8]] = []
        var sum = 0
        for table in within.sorted(by: { $0.first.lexicographicallyPrecedes($1.first) }) {
            if sum >= bytes {
                cuts.append(Array(table.first))
                sum = 0
            }
            sum += table.byteCount
        }
        return cuts
    }

    /// Reads the new part of the manifest.
    /// - Returns: nil if the manifest cannot be read or has unknown content.
    private func update(_ state: inout State) -> ManifestScan? {
        do {
            if state.manifest == nil {
                state.manifest = try ManifestScan.scan(directory: path)
                if let manifest = state.manifest { state.sizes = Self.sizes(of: manifest) }
            } else if try state.manifest?.update(directory: path) ?? false, let manifest = state.manifest {
                state.sizes = Self.sizes(of: manifest)
            }
        } catch {
            state.manifest = nil
        }
        return state.manifest.flatMap { $0.hasUnknownEdit ? nil : $0 }
    }

    private static func sizes(of manifest: ManifestScan) -> Sizes {
        var levels: [Int: [ManifestScan.Table]] = [:]
        var sizes: Sizes = (0, 0)
        for table in manifest.tables.values {
            levels[table.level, default: []].append(table)
            // Round up to whole blocks of 4096 bytes.
            sizes.bytes += (table.byteCount + 4095) & ~4095
        }
        for level in levels.keys {
            levels[level]?.sort { $0.first.lexicographicallyPrecedes($1.first) }
        }
        for (level, tables) in levels {
            let below = levels[level + 1] ?? []
            sizes.largestMerge = max(sizes.largestMerge, largestMerge(tables, below, isZero: level == 0))
        }
        return sizes
    }

    /// The maximum number of bytes that LevelDB could merge from one level into the next.
    private static func largestMerge(
        _ tables: [ManifestScan.Table], _ below: [ManifestScan.Table], isZero: Bool
    ) -> Int {
        // Tables of level 0 overlap, so LevelDB may merge all of them in one step. In other levels it merges one table,
        // or a few adjacent small ones. The upper bound for the other levels is a pair of adjacent tables.
        if isZero { return sum(tables) + sum(below) }
        var most = 0
        var first = 0
        for index in tables.indices {
            let next = min(index + 1, tables.count - 1)
            let (low, high) = (tables[index].first, tables[next].last)
            while first < below.count, below[first].last.lexicographicallyPrecedes(low) { first += 1 }
            var bytes = sum(tables[index...next])
            for table in below[first...] {
                if high.lexicographicallyPrecedes(table.first) { break }
                bytes += table.byteCount
            }
            most = max(most, bytes)
        }
        return most
    }

    private static func sum(_ tables: some Sequence<ManifestScan.Table>) -> Int {
        tables.reduce(0) { $0 + $1.byteCount }
    }
}
