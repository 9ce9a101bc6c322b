import LarderEngine
import LarderPlatform
import LarderRESP
import Synchronization

/// The progress of a script outside of MULTI.
///
/// A script first runs with the locks of its keys held, for a few milliseconds at most; most scripts finish in that
/// time. If it takes longer, its changes are discarded. It restarts on its own thread, without locks, on copies of the
/// entries, and its calls and their results are recorded. Then the recorded commands are replayed with the locks held.
/// If each command returns the recorded result, the script would have made the same calls with locks, and its changes
/// are applied. Otherwise it restarts.
///
/// Confined to its session's owner.
final class ScriptProgress {
    enum Stage {
        /// With locks held.
        case inPlace
        /// Without locks, recording.
        case speculating
        /// With locks held, replaying the record.
        case replaying(ScriptRecord)
    }

    /// The start time, in nanoseconds of the monotonic clock.
    let begin: Int64
    let killSwitch = ScriptKillSwitch()
    var stage = Stage.inPlace
    /// Whether it continues on its own thread.
    var isLong = false
    /// The number of restarts.
    var repeats = 0
    /// The number of replays that failed because the record was out of date.
    var conflicts = 0
    /// The duration of the last run without locks, in nanoseconds.
    var lastRun: Int64 = 0
    /// How long the script may hold the locks, in nanoseconds, because its replays kept failing; nil if it must run
    /// without locks.
    var heldSlice: Int64?

    /// After this many conflicts, a script that takes at most ``heldRunMax`` nanoseconds holds the locks.
    static let conflictsMax = 3
    static let heldRunMax: Int64 = 100_000_000

    init() { begin = MonotonicClock.nanoseconds() }

    /// The time that the script's commands see, once it is fixed; nil before.
    var time: Int64? {
        guard case .replaying(let record) = stage else { return nil }
        return record.now
    }

    /// The number of restarts with the locks held before the script continues without them.
    static let repeatsInPlace = 4
}

/// The calls and results of a script that ran without locks, and its reply.
struct ScriptRecord {
    /// The time of the commands.
    let now: Int64
    /// The ``Session/rightsGeneration`` at the start, whose rights allowed the commands.
    let rightsGeneration: Int
    /// The seed of jitters.
    let seed = UInt64.random(in: 0 ... .max)
    var commands: [QueuedCommand] = []
    /// The lengths and hashes of the encoded results; nil for results that may differ.
    var answers: [Answer?] = []
    /// The protocol version of each result.
    var versions: [RESPVersion] = []
    /// The memory use of the commands.
    var byteCount = 0
    /// The encoded reply of the script.
    var reply: [UInt8] = []

    init(now: Int64, rightsGeneration: Int) {
        self.now = now
        self.rightsGeneration = rightsGeneration
    }

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
