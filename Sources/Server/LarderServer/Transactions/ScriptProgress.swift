import LarderEngine
import LarderPlatform
import LarderRESP
import Synchronization

/// How far a script outside of MULTI has come.
///
/// It runs with the locks of its keys held, for a slice of a few milliseconds at most, as most scripts never notice. If
/// it takes longer, nothing of it is applied: it begins anew on a thread of its own, without any lock, on copies of the
/// entries; what it asks for and is answered is recorded. Then the recorded commands run with the locks held. If each
/// gets the same answer, the script would have done just this, and they are applied; else it begins anew.
///
/// Confined to its session's owner.
final class ScriptProgress {
    enum Stage {
        /// With locks held.
        case inPlace
        /// Without locks, recording.
        case speculating
        /// With locks held: what was recorded.
        case replaying(ScriptRecord)
    }

    /// When it began, in nanoseconds of the monotonic clock.
    let begin: Int64
    let killSwitch = ScriptKillSwitch()
    var stage = Stage.inPlace
    /// Whether it goes on on a thread of its own.
    var isLong = false
    /// How often it began anew.
    var repeats = 0
    /// How often what was recorded was out of date.
    var conflicts = 0
    /// How long the last run without locks took, in nanoseconds.
    var lastRun: Int64 = 0
    /// How long it may hold the locks after all, because others were always faster, in nanoseconds; nil for not at all.
    var heldSlice: Int64?

    /// After so many conflicts a script that takes at most ``heldRunMax`` nanoseconds holds the locks.
    static let conflictsMax = 3
    static let heldRunMax: Int64 = 100_000_000

    init() { begin = MonotonicClock.nanoseconds() }

    /// The time of its commands, if that is settled.
    var time: Int64? {
        guard case .replaying(let record) = stage else { return nil }
        return record.now
    }

    /// How often a script may begin anew with the locks held before it goes on without them.
    static let repeatsInPlace = 4
}

/// What a script asked for and was answered while it ran without locks, and its reply.
struct ScriptRecord {
    /// The time of the commands.
    let now: Int64
    /// The rules by which its commands were allowed: ``Session/rightsGeneration`` when it began.
    let rightsGeneration: Int
    /// From which jitters are drawn.
    let seed = UInt64.random(in: 0 ... .max)
    var commands: [QueuedCommand] = []
    /// The encoded answers' lengths and hashes; nil for those that may differ.
    var answers: [Answer?] = []
    /// The version that each answer was encoded in.
    var versions: [RESPVersion] = []
    /// The memory of the commands.
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
