/// The recently invalidated keys, for running calls that must check their keys against them. Bounded. Confined to the
/// loop.
struct InvalidationMemory {
    /// The most keys in each of the two halves.
    private static let keysMax = 8192

    /// Increases with each invalidation.
    private(set) var sequence: UInt64 = 1
    private var newer: [[UInt8]: UInt64] = [:]
    private var older: [[UInt8]: UInt64] = [:]
    /// Invalidations before this sequence are forgotten.
    private var forgottenBefore: UInt64 = 0

    mutating func note(_ keys: [[UInt8]]) {
        sequence += 1
        for key in keys { newer[key] = sequence }
        guard newer.count > Self.keysMax else { return }
        // Everything that is dropped is older than everything that is kept.
        forgottenBefore = older.values.max() ?? forgottenBefore
        older = newer
        newer = [:]
    }

    /// Forgets all keys, because no call needs them.
    mutating func forget() {
        guard !newer.isEmpty || !older.isEmpty else { return }
        newer = [:]
        older = [:]
    }

    /// Whether the key may have changed after the sequence `heard`.
    func hasChanged(_ key: [UInt8], since heard: UInt64) -> Bool {
        if heard < forgottenBefore { return true }
        if let last = newer[key] ?? older[key] { return last > heard }
        return false
    }
}
