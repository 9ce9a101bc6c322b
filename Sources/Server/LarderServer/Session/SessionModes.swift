/// The modes that commands have set on the connection: its authentication and its replies.
///
/// A value type, owned by its session.
struct SessionModes {
    /// Whether the client has sent the password, or needs none.
    var isAuthenticated = true
    var replyMode = ReplyMode.on

    /// Whether the running command sends no reply, because of CLIENT REPLY.
    var isSilent: Bool { replyMode != .on }

    /// Ends the effect of CLIENT REPLY SKIP, which applies only to the next command.
    mutating func endCommand() {
        switch replyMode {
        case .skipsNext: replyMode = .skipping
        case .skipping: replyMode = .on
        case .on, .off: break
        }
    }
}

/// The setting of CLIENT REPLY.
enum ReplyMode {
    case on, off
    /// The next command gets no reply.
    case skipsNext
    /// The current command gets no reply.
    case skipping
}
