/// Owns the modes that commands have set on the connection: its user, which replies it wants, and its tracking of keys.
///
/// A value; its session owns it.
struct SessionModes {
    /// Whether the password was given, or none is needed.
    var isAuthenticated = true
    var replyMode = ReplyMode.on
    /// What CLIENT TRACKING has begun.
    var tracking: TrackingClient?
    /// What CLIENT CACHING has set for the next command.
    var caching: Bool?
}

/// What CLIENT REPLY has set.
enum ReplyMode {
    case on, off
    /// The next command gets no reply.
    case skipsNext
    /// The current command gets none.
    case skipping
}
