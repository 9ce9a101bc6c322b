import LarderEngine
import LarderRESP

/// A transaction that EXEC has begun.
///
/// Its commands run with the locks of all their keys held and are one commit unit. If a command works on a whole
/// database, the commands before it are one unit, and those behind it another.
///
/// Confined to its session's owner.
final class Execution {
    let commands: [QueuedCommand]
    var watches: [KeyWatch]
    /// The next command to run.
    var next = 0
    /// Whether the header of the reply was written.
    var isBegun = false
    /// Whether commands that run on the loop are units by themselves, because others must read the disk.
    var isSplit = false
    /// Where the reply begins, counted from the connection's beginning.
    var start = 0
    /// Messages that came before the reply was complete.
    var pushes: [PushMessage] = []
    /// The script that is run, outside of MULTI: then ``commands`` is its one call.
    let scriptCall: ScriptCall?
    let script: ScriptProgress?
    /// How much CPU time the scripts of the transaction have used, in nanoseconds.
    var scriptTime: Int64 = 0
    /// The libraries of functions, once one was called: all calls of a unit see the same.
    var functions: FunctionLibraries.State?
    /// Keys that commands asked for, and that their key positions do not tell.
    var more: [TransactionMissing] = []

    init(_ commands: [QueuedCommand], watches: [KeyWatch]) {
        self.commands = commands
        self.watches = watches
        scriptCall = nil
        script = nil
    }

    init(_ command: QueuedCommand, script: ScriptCall) {
        commands = [command]
        watches = []
        scriptCall = script
        self.script = ScriptProgress()
    }

    /// The script for those who ask for it.
    var running: RunningScript? {
        guard let scriptCall, let script, let command = commands.first else { return nil }
        return RunningScript(
            name: scriptCall.script.title, isFunction: scriptCall.script.code.isLibrary,
            words: (0..<min(command.count, Self.shownWordsMax)).map { Array(command[$0].prefix(Self.shownBytesMax)) },
            begin: script.begin)
    }

    /// How much of a call is shown.
    private static let shownWordsMax = 32
    private static let shownBytesMax = 128

    /// Called without any shard's lock held.
    func endWatches() {
        for watch in watches { watch.end() }
        watches = []
    }
}
