/// The failures that a write survives once it is acknowledged.
public enum Durability: String, Sendable, CaseIterable {
    /// Written to the operating system: survives the death of the process (SIGKILL), but not a failure of the machine.
    case os
    /// Like ``os``, plus an fsync at least once a second. The default.
    case everysecond
    /// The fsync has returned before the write is acknowledged; concurrent writes share an fsync.
    case always

    /// The strictness: a level with a higher rank gives all guarantees of those with lower ranks.
    var rank: Int {
        switch self {
        case .os: 0
        case .everysecond: 1
        case .always: 2
        }
    }
}
