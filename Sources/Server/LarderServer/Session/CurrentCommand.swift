import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The last parsed command of a session. A value type, owned by its session.
struct CurrentCommand {
    /// Whether the command has not run yet, for example because it waits for files, for the disk, or for other commits.
    var isPending = false
    /// Whether the next command waits for work on another thread.
    var waitsForWork = false
    /// The command's row in the table of commands; nil before the first known command.
    private(set) var row: CommandMetadata?
    /// The command's planner; nil if it has none.
    private(set) var planner: EntryPlan.Planner?
    private var word = ShortWord.other

    /// Whether the command has this name. If so, the table of commands need not be searched.
    func isNamed(_ word: ShortWord) -> Bool { word == self.word && word != .other }

    mutating func note(_ row: CommandMetadata, _ planner: EntryPlan.Planner?, _ word: ShortWord) {
        (self.row, self.planner, self.word) = (row, planner, word)
    }
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
