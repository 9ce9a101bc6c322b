/// What a load has stored: the newest size and deadline of each key, and how long entries lived.
///
/// Used by one thread at a time.
final class Ledger {
    private struct Entry {
        let bytes: Int
        let written: Double
        let deadline: Double
        let isJudged: Bool
    }

    private var entries: [Int: Entry] = [:]
    private let shortLife: Double
    private let countsSeconds: Bool
    /// The bytes of keys and values of all SETs.
    private(set) var acceptedBytes = 0
    private var judgedBytes = 0
    private var shortLivedBytes = 0
    /// Whether the lives of entries that are stored now count for ``shortLivedPercent(at:)``.
    var isJudging = true

    /// - Parameters:
    ///   - dialect: memcached's lifetimes are whole seconds.
    ///   - shortLife: the longest life in seconds that is short.
    init(_ dialect: Dialect, shortLife: Double = 0) {
        countsSeconds = dialect == .memcached
        self.shortLife = shortLife
    }

    func note(key: Int, _ kind: Load.Kind, at now: Double) {
        let lifetime =
            countsSeconds ? kind.lifetimeSeconds.map(Double.init) : kind.lifetimeMilliseconds.map { Double($0) / 1000 }
        let new = Entry(
            bytes: Keys.byteCount + kind.valueBytes, written: now, deadline: now + (lifetime ?? .infinity),
            isJudged: isJudging)
        acceptedBytes += new.bytes
        if isJudging { judgedBytes += new.bytes }
        if let old = entries.updateValue(new, forKey: key), isShortLived(old, at: now) { shortLivedBytes += old.bytes }
    }

    /// The bytes of keys and values that are stored and have not expired.
    func liveBytes(at now: Double) -> Int {
        entries.values.reduce(0) { $1.deadline > now ? $0 + $1.bytes : $0 }
    }

    /// The percentage of the bytes that were overwritten or expired within a short life.
    func shortLivedPercent(at now: Double) -> Double {
        let expired = entries.values.reduce(0) {
            $1.deadline <= now && isShortLived($1, at: now) ? $0 + $1.bytes : $0
        }
        return 100 * Double(shortLivedBytes + expired) / Double(max(judgedBytes, 1))
    }

    /// - Parameter end: when the entry was overwritten, or now.
    private func isShortLived(_ entry: Entry, at end: Double) -> Bool {
        let death = min(entry.deadline, end)
        return entry.isJudged && death - entry.written <= shortLife
    }
}
