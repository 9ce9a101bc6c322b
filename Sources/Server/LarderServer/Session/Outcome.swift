import LarderEngine
import LarderPlatform
import LarderRESP

/// The state of a command after its handler has returned.
enum Outcome {
    /// The reply is written.
    case done
    /// The reply is written, and the connection must be closed after it is sent.
    case close
    /// Nothing is written yet. A thread that may block must run this work, which writes the reply.
    case deferred(DeferredWork)
    /// Nothing is written. The command runs again when it is woken, at the latest at this time of the monotonic clock
    /// (in milliseconds). Meanwhile, other connections are served.
    case waits(until: Int64)
}

extension Outcome {
    /// Runs work on a thread that may block. The work writes the reply.
    static func later(_ work: @escaping @Sendable (inout ReplyBuffer) throws(CommandError) -> Void) -> Outcome {
        .deferred { (reply) throws(CommandError) in
            try work(&reply)
            return nil
        }
    }

    /// Runs work on a thread that may block, and replies with OK.
    static func okLater(_ work: @escaping @Sendable () throws(CommandError) -> Void) -> Outcome {
        .later { (reply) throws(CommandError) in
            try work()
            reply.simple("OK")
        }
    }
}

/// Work that runs on a thread that may block, and writes the command's reply.
/// - Returns: a function that the connection's loop calls afterwards; nil if there is nothing more to do.
typealias DeferredWork = @Sendable (inout ReplyBuffer) throws(CommandError) -> (@Sendable (Session) -> Void)?

/// The result of deferred work.
struct WorkResult: Sendable {
    let reply: [UInt8]
    let then: (@Sendable (Session) -> Void)?
    /// The duration of the work, with the time that it has waited for a thread.
    let nanoseconds: Int64
    /// The error to reply with; nil if the work has succeeded.
    let failure: CommandError?

    /// Runs the work on the calling thread.
    /// - Parameter begin: when the work was submitted.
    init(_ work: DeferredWork, version: RESPVersion, since begin: Int64 = MonotonicClock.nanoseconds()) {
        var buffer = ReplyBuffer(version: version)
        do throws(CommandError) {
            then = try work(&buffer)
            failure = nil
        } catch {
            buffer.clear()
            buffer.error(error.bytes)
            then = nil
            failure = error
        }
        nanoseconds = MonotonicClock.nanoseconds() - begin
        reply = buffer.take()
    }
}

/// The reason why a session has stopped running commands.
enum Pause {
    /// All complete commands have run.
    case needsInput
    /// A thread that may block must run this work. Then pass the result to ``Session/finish(_:)``.
    case work(DeferredWork)
    /// This database's files must be opened, created or reopened. Then call ``Session/finishPreparing(_:)``.
    case prepare(Database, forWriting: Bool)
    /// The current command must read the disk. Run the session on a thread that may block, with a slice.
    case cold
    /// The session has used up its time on this thread; run it again.
    case sliceEnded
    /// There are too many uncommitted writes; run the session again later.
    case congested
    /// CLIENT PAUSE or the replay of the journal delays the current command; run the session again later.
    case paused
    /// The current command waits, for example for a value that another client computes. Run the session again when it
    /// is woken, at the latest at this time of the monotonic clock (in milliseconds).
    case waiting(until: Int64)
    /// There are too many unsent bytes of replies; run the session again after they are sent.
    case outputFull
    /// The connection must be closed after the replies are sent.
    case closing
}
