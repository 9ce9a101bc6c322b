import LarderEngine
import LarderRESP

/// A transaction started by EXEC.
///
/// Its commands run with the locks of all their keys held, and form one commit unit. If a command works on a whole
/// database, the commands before it form one unit, and the commands after it form another.
///
/// Confined to its session's owner.
final class Execution {
    let commands: [QueuedCommand]
    var watches: [KeyWatch]
    /// The next command to run.
    var next = 0
    /// Whether the header of the reply was written.
    var isBegun = false
    /// Whether commands that run on the loop are separate units, because other commands must read the disk.
    var isSplit = false
    /// The position at which the reply starts, in the connection's whole output.
    var start = 0
    /// Messages that arrived before the reply was complete.
    var pushes: [PushMessage] = []
    /// The script that runs outside of MULTI. In this case, ``commands`` contains only its call.
    let scriptCall: ScriptCall?
    let script: ScriptProgress?
    /// The CPU time used by the scripts of the transaction, in nanoseconds.
    var scriptTime: Int64 = 0
    /// The function libraries, once a function was called: all calls of a unit use the same libraries.
    var functions: FunctionLibraries.State?
    /// Keys that commands turned out to need, although their key positions do not include them.
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

    /// The description of the running script for other clients.
    var running: RunningScript? {
        guard let scriptCall, let script, let command = commands.first else { return nil }
        return RunningScript(
            name: scriptCall.script.title, isFunction: scriptCall.script.code.isLibrary,
            words: (0..<min(command.count, Self.shownWordsMax)).map { Array(command[$0].prefix(Self.shownBytesMax)) },
            begin: script.begin)
    }

    /// The limits of the call's description.
    private static let shownWordsMax = 32
    private static let shownBytesMax = 128

    /// Called without any shard's lock held.
    func endWatches() {
        for watch in watches { watch.end() }
        watches = []
    }
}
