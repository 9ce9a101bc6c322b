extension UpdatePolicy {
    /// Creates the policy for an interval as the server reports it: in milliseconds, or -1 for never. Nil for an
    /// invalid interval.
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
