/// Which keys were said to have changed lately, as far as calls are under way that must know. Bounded. Confined to the
/// loop.
struct InvalidationMemory {
    /// How many keys each of the two halves has at most.
    private static let keysMax = 8192

    /// Goes up with everything that is heard.
    private(set) var sequence: UInt64 = 1
    private var newer: [[UInt8]: UInt64] = [:]
    private var older: [[UInt8]: UInt64] = [:]
    /// What was heard before this is forgotten.
    private var forgottenBefore: UInt64 = 0

    mutating func note(_ keys: [[UInt8]]) {
        sequence += 1
        for key in keys { newer[key] = sequence }
        guard newer.count > Self.keysMax else { return }
        // All that is dropped was heard before what is kept.
        forgottenBefore = older.values.max() ?? forgottenBefore
        older = newer
        newer = [:]
    }

    /// Nobody needs what was heard so far.
    mutating func forget() {
        guard !newer.isEmpty || !older.isEmpty else { return }
        newer = [:]
        older = [:]
    }

    /// Whether the key may have changed since the sequence was `heard`.
    func hasChanged(_ key: [UInt8], since heard: UInt64) -> Bool {
        if heard < forgottenBefore { return true }
        if let last = newer[key] ?? older[key] { return last > heard }
        return false
    }
}
