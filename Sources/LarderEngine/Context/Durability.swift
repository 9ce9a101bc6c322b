/// What a write has survived before it is acknowledged.
public enum Durability: String, Sendable, CaseIterable {
    /// The operating system has it: it survives the death of the process (SIGKILL), not of the machine.
    case os
    /// As ``os``, and an fsync at least once a second. The default.
    case everysecond
    /// fsync came back before the write is acknowledged; many writes share one.
    case always

    /// The stricter, the higher.
    var rank: Int {
        switch self {
        case .os: 0
        case .everysecond: 1
        case .always: 2
        }
    }
}
