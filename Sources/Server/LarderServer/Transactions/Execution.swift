import LarderEngine
import LarderRESP

/// A running transaction, which EXEC or a script has begun.
///
/// Its commands run while the locks of all their keys are held, and are committed together. If a command works on a
/// whole database, the commands before it are committed together, and so are the commands after it.
///
/// Used only by the owner of its session.
final class Execution {
    let commands: [QueuedCommand]
    var watches: [KeyWatch]
    /// The index of the next command to run.
    var next = 0
    /// Whether the first part of the reply, which contains the number of its elements, was written.
    var isBegun = false
    /// Whether the transaction is committed in several parts. This is necessary if some commands must run on the event
    /// loop, and others must read the disk.
    var isSplit = false
    /// Whether commands that only read run on copies of the entries, without locks, because they take long.
    var readsCopies = false
    /// The position at which the reply starts, counted from the first byte of the connection's output.
    var start = 0
    /// Messages for the client that arrived before the reply was complete. They are sent after the reply.
    var pushes: [PushMessage] = []
    /// The call of the script, if the transaction is a script outside of MULTI. The script is then the only command in
    /// ``commands``.
    let scriptCall: ScriptCall?
    let script: ScriptProgress?
    /// The CPU time that the scripts in the transaction have used, in nanoseconds.
    var scriptTime: Int64 = 0
    /// The function libraries that all calls of functions in this transaction use; nil until a function is called.
    var functions: FunctionLibraries.State?
    /// Keys and files that a failed attempt needed, although the commands' words do not name them.
    var alsoNeeded: [TransactionMissing] = []

    init(_ commands: [QueuedCommand], watches: [KeyWatch] = [], script: ScriptCall? = nil) {
        self.commands = commands
        self.watches = watches
        scriptCall = script
        self.script = script.map { _ in ScriptProgress() }
    }

    /// Whether the script must continue on a thread for long scripts.
    var needsScriptThread: Bool { script?.isLong ?? false }

    /// The description of the running script that other clients can see.
    var running: RunningScript? {
        guard let scriptCall, let script, let command = commands.first else { return nil }
        return RunningScript(
            name: scriptCall.script.title, isFunction: scriptCall.script.code.isLibrary,
            words: (0..<min(command.count, Self.shownWordsMax)).map { Array(command[$0].prefix(Self.shownBytesMax)) },
            begin: script.begin)
    }

    /// The maximum number of words in the description. `shownBytesMax` is the maximum length of a word, in bytes.
    private static let shownWordsMax = 32
    private static let shownBytesMax = 128

    /// Whether the next commands only read entries, so that they can run on copies. Watches need the locks.
    var onlyReads: Bool {
        func read(_ commands: some Sequence<QueuedCommand>) -> Bool {
            commands.allSatisfy { $0.row.flags.contains(.readonly) && !$0.row.flags.contains(.runsScript) }
        }
        guard watches.isEmpty else { return false }
        guard let script else { return read(commands[next...]) }
        if case .replaying(let record) = script.stage { return read(record.commands) }
        return false
    }

    /// Ends the watches. The caller must not hold locks of the engine's shards, the parts of a database's memory.
    func endWatches() {
        for watch in watches { watch.end() }
        watches = []
    }
}
