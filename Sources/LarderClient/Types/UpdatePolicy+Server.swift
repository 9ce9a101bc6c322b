extension UpdatePolicy {
    /// The policy with the server's interval: milliseconds, or -1 for never.
    init?(serverInterval milliseconds: Int64) {
        if milliseconds == -1 {
            self = .never
        } else if let policy = Self.every(milliseconds: milliseconds) {
            self = policy
        } else {
            return nil
        }
    }
}
