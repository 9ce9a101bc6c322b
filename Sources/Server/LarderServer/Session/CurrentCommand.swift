import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The last parsed command of a session. A value type, owned by its session.
struct CurrentCommand {
    /// Whether the command has not run yet, for example because it waits for files, for the disk, or for other commits.
    var isPending = false
    /// Whether the next command waits for work on another thread.
    var waitsForWork = false
    /// Whether the command's work on another thread is a query that may take seconds.
    var isLongQuery = false
    /// The command's planner; nil before the first known command. Not reference-counted, because all event loops would
    /// change the same counter: planners are never freed.
    private(set) var planner: Unmanaged<CommandPlanner>?
    private var word = ShortWord.other

    /// Whether the command has this name. If so, the table of commands need not be searched.
    func isNamed(_ word: ShortWord) -> Bool { word == self.word && word != .other }

    mutating func note(_ planner: CommandPlanner, _ word: ShortWord) {
        (self.planner, self.word) = (.passUnretained(planner), word)
    }

    /// The command's row in the table of commands.
    var row: CommandMetadata? { planner?.takeUnretainedValue().row }
}

/// A command's row in the table of commands, and the function that plans its calls, if it has one.
final class CommandPlanner: Sendable {
    let row: CommandMetadata
    private let function: EntryPlan.Planner?

    init(_ row: CommandMetadata, _ function: EntryPlan.Planner?) { (self.row, self.function) = (row, function) }

    /// Whether the command is planned. Otherwise it has a handler.
    var hasFunction: Bool { function != nil }

    /// Plans what a call does; nil if the command has a handler.
    @inline(__always)
    func plan(_ words: CallWords) throws(CommandError) -> EntryPlan? { try function?(words) }
}

/// The thread on which a session runs, and the thread that its next command needs. A value type, owned by its session.
struct ThreadPlacement {
    /// Whether the current thread is the session's event loop.
    private(set) var isOnLoop = true
    /// Whether the current thread is the one that builds long values.
    private(set) var mayBuildLong = false
    /// Whether the next command must run on the thread that builds long values.
    var needsLongThread = false

    /// Begins to run on a thread.
    mutating func enter(isOnLoop: Bool, mayBuildLong: Bool) {
        (self.isOnLoop, self.mayBuildLong) = (isOnLoop, mayBuildLong)
        if mayBuildLong { needsLongThread = false }
    }

    /// Returns whether a value of this many bytes may be built or copied on this thread.
    func admits(_ bytes: Int) -> Bool { bytes < Database.largeValueBytesMin || mayBuildLong }
}

/// The modes that commands have set on the connection: its authentication and its replies.
///
/// A value type, owned by its session.
struct SessionModes {
    /// Whether the client has sent the password, or needs none.
    var isAuthenticated = true
    var replyMode = ReplyMode.on
    /// Whether replies may have attributes, which many clients of RESP3 cannot read: see CLIENT CAPA.
    var takesAttributes = false

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
