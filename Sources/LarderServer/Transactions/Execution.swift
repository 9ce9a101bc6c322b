import LarderEngine
import RESP

/// A transaction that EXEC has begun.
///
/// Its commands run with the locks of all their keys held and are one commit unit, except where a command works on whole
/// databases: then what stands before it is one unit, and what stands behind it another.
///
/// Confined to its session's owner.
final class Execution {
    let commands: [QueuedCommand]
    var watches: [KeyWatch]
    /// The next command to run.
    var next = 0
    /// Whether the header of the reply is written.
    var isBegun = false
    /// Whether commands that run on the loop are units of their own, because others must read the disk.
    var isSplit = false
    /// Where the reply begins, counted from the connection's beginning.
    var start = 0
    /// Messages that came while the reply was not complete.
    var pushes: [PushMessage] = []
    /// What commands asked for and their key positions do not say.
    var more: [TransactionMissing] = []

    init(_ commands: [QueuedCommand], watches: [KeyWatch]) {
        self.commands = commands
        self.watches = watches
    }

    /// Called without any shard's lock held.
    func endWatches() {
        for watch in watches { watch.end() }
        watches = []
    }
}
