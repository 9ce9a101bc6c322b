/// The modes that commands have set on the connection: its authentication, replies, and tracking.
///
/// A value type, owned by its session.
struct SessionModes {
    /// Whether the client has sent the password, or needs none.
    var isAuthenticated = true
    var replyMode = ReplyMode.on
    /// The state of CLIENT TRACKING; nil if the client does not track.
    var tracking: TrackingClient?
    /// The setting of CLIENT CACHING for the next command; nil if it was not used.
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
