/// The modes that commands have set on the connection: its authentication, replies, and tracking.
///
/// A value type, owned by its session.
struct SessionModes {
    /// Whether the password was given, or is not needed.
    var isAuthenticated = true
    var replyMode = ReplyMode.on
    /// The state of CLIENT TRACKING.
    var tracking: TrackingClient?
    /// The setting of CLIENT CACHING for the next command.
    var caching: Bool?
}

/// The setting of CLIENT REPLY.
enum ReplyMode {
    case on, off
    /// The next command gets no reply.
    case skipsNext
    /// The current command gets no reply.
    case skipping
}
