/// Owns what commands have made of the connection: who it is, which replies it wants, and what it is told of the keys it reads.
///
/// A value; its session owns it.
struct SessionModes {
    /// Whether the password was given, or there is none.
    var isAuthenticated = true
    var replyMode = ReplyMode.on
    /// What CLIENT TRACKING has begun.
    var tracking: TrackingClient?
    /// What CLIENT CACHING said of the next command.
    var caching: Bool?
}

/// What CLIENT REPLY has set.
enum ReplyMode {
    case on, off
    /// The next command gets no reply.
    case skipsNext
    /// This one gets none.
    case skipping
}
