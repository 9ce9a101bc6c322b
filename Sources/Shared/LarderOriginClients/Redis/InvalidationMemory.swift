/// The recently invalidated keys. Running calls check at their end whether their keys were invalidated meanwhile.
/// Limited in size. Used on the loop's thread only.
struct InvalidationMemory {
    /// When `newer` has more keys than this, it replaces `older`, whose keys are forgotten.
    private static let keysMax = 8192

    /// The sequence number of the last invalidation message.
    private(set) var sequence: UInt64 = 1
    /// The sequence number of the last invalidation of each key, in two generations.
    private var newer: [[UInt8]: UInt64] = [:]
    private var older: [[UInt8]: UInt64] = [:]
    /// Invalidations with lower sequence numbers are forgotten.
    private var forgottenBefore: UInt64 = 0

    mutating func note(_ keys: [[UInt8]]) {
        sequence += 1
        for key in keys { newer[key] = sequence }
        guard newer.count > Self.keysMax else { return }
        // All invalidations in `older`, which are forgotten now, are older than all kept invalidations.
        forgottenBefore = older.values.max() ?? forgottenBefore
        older = newer
        newer = [:]
    }

    /// Removes all keys. Called when no running call needs them.
    mutating func forget() {
        guard !newer.isEmpty || !older.isEmpty else { return }
        newer = [:]
        older = [:]
    }

    /// Whether the key may have been invalidated after the sequence number `heard`.
    func hasChanged(_ key: [UInt8], since heard: UInt64) -> Bool {
        if heard < forgottenBefore { return true }
        if let last = newer[key] ?? older[key] { return last > heard }
        return false
    }
}
