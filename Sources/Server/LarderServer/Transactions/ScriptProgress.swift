import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// The progress of a script outside of MULTI.
///
/// A script first runs while the locks of its keys are held. Most scripts end within the few milliseconds that are
/// allowed for this. If a script takes longer, its changes are discarded, and it starts again on a separate thread,
/// without locks. There it works on copies of the entries, and its calls and their results are recorded. Then the
/// recorded calls are replayed while the locks are held. If each call returns the recorded result, a run with locks
/// would have made the same changes, so these changes are applied. Otherwise, the script starts again.
///
/// Used only by the owner of its session.
final class ScriptProgress {
    enum Stage {
        /// The script runs with locks held.
        case inPlace
        /// The script runs without locks, and its calls are recorded.
        case speculating
        /// The recorded calls are replayed with locks held.
        case replaying(ScriptRecord)
    }

    /// When the script was called, in nanoseconds of the monotonic clock.
    let begin: Int64
    let killSwitch = ScriptKillSwitch()
    var stage = Stage.inPlace
    /// Whether the script runs on a thread for long scripts.
    var isLong = false
    /// How many times the script has started again.
    var repeats = 0
    /// How many replays have failed, because other clients had changed the entries in the meantime.
    var conflicts = 0
    /// How long the last run of the script took, in nanoseconds.
    var lastRun: Int64 = 0
    /// How long the script may hold its locks after too many failed replays, in nanoseconds; nil for the usual limit.
    var heldSlice: Int64?

    /// After this many failed replays, a script that takes at most ``heldRunMax`` nanoseconds runs with locks held.
    private static let conflictsMax = 3
    private static let heldRunMax: Int64 = 100_000_000

    init() { begin = MonotonicClock.nanoseconds() }

    /// During a replay, the time that the commands use as the current time: that of the recorded run. Nil otherwise.
    var time: Int64? {
        guard case .replaying(let record) = stage else { return nil }
        return record.now
    }

    /// Makes the script start again after a failed replay.
    func replayFailed() {
        stage = .speculating
        conflicts += 1
        // Other clients keep changing the script's entries. Hold the locks from now on, so that these clients wait.
        if conflicts >= Self.conflictsMax, lastRun <= Self.heldRunMax {
            stage = .inPlace
            heldSlice = 2 * lastRun + ScriptSlice.blocking
        }
    }

    /// How many times a script may start again with locks held, before it runs without them.
    static let repeatsInPlace = 4
}

/// The record of a script's run without locks: its calls, their results, and its reply.
///
/// Used only by the owner of its session.
final class ScriptRecord {
    /// The current time that all commands of the script used.
    let now: Int64
    /// The ``ConnectionRights/generation`` when the script began. If it has changed, the rights of the user may have
    /// changed.
    let rightsGeneration: Int
    /// The seed for random jitter of lifetimes, so that a replay computes the same lifetimes.
    let seed = UInt64.random(in: 0 ... .max)
    var commands: [QueuedCommand] = []
    /// For each call, the length and the hash of its result; nil if the result need not be the same in a replay.
    var answers: [Answer?] = []
    /// For each call, the protocol version of its result.
    var versions: [RESPVersion] = []
    /// The memory that the calls use, in bytes.
    var byteCount = 0
    /// The script's reply, encoded in RESP.
    var reply: [UInt8] = []

    init(now: Int64, rightsGeneration: Int) { (self.now, self.rightsGeneration) = (now, rightsGeneration) }

    struct Answer: Equatable {
        let count: Int
        let hash: Int

        init(_ bytes: UnsafeRawBufferPointer) {
            count = bytes.count
            var hasher = Hasher()
            hasher.combine(bytes: bytes)
            hash = hasher.finalize()
        }
    }
}

/// A call of EVAL or a similar command: the script, and how many of the arguments are keys.
struct ScriptCall {
    let script: Script
    let keyCount: Int
    /// Whether the script must not write.
    let isReadOnly: Bool

    /// The position of the first key in the call.
    static let firstKey = 3
}
