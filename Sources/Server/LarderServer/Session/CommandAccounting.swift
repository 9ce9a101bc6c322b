import LarderCommandCatalog
import LarderPlatform
import LarderRESP

/// The counts of commands that ran in memory without checks, and are not timed one by one.
struct UntimedCounts {
    /// The row number of the last of these commands. `count` is the number of its consecutive calls that are not in the
    /// statistics yet.
    var number = 0
    var count = 0
    /// The number of untimed calls in the current run of the session that are already in the statistics.
    var earlier = 0
    /// How many units of work may follow before the clock is read again. A command takes one unit, plus one for each
    /// KiB that it copies.
    var workLeft = 0
    /// The average duration of a command, from the last measured run of the session without commands timed alone.
    var nanosecondsEach: Int64 = 0
    /// The number of runs of the session. ``CommandAccounting/beginSample()`` uses it to choose which runs are timed.
    var runs = 0

    /// The number of units of work between two readings of the clock. Together they take some tens of microseconds.
    static let workPerTime = 64
}

/// The time that the commands of a turn of an event loop share: see ``CommandRunner/run(outputBytesMax:slice:)``.
struct TurnTime {
    var now: Int64 = 0
    /// As ``UntimedCounts/workLeft``; 0 if the clock must be read.
    var workLeft = 0
}

/// A command whose work runs on another thread. It is added to the statistics when the work is done.
struct PendingNote {
    let row: CommandMetadata
    /// The words of a command in a transaction; nil if the parser has the words.
    let command: QueuedCommand?
    /// The position in the output at which the command's reply starts; nil in a transaction.
    let start: Int?
}

/// The statistics and log entries of one connection's commands, and the connection's record for other threads.
///
/// Used only by the owner of its session.
final class CommandAccounting {
    let server: ServerState
    let counter: CommandCounter
    /// The record of the connection, which other threads may read.
    let record: ClientRecord
    /// The commands that ran without being timed since the last call of `noteRun`. A pointer, because Swift checks each
    /// access to a class's stored property for exclusivity at run time.
    let untimed = UnsafeMutablePointer<UntimedCounts>.allocate(capacity: 1)
    /// The commands that scripts have called. They are added to the statistics if the scripts' changes are applied. A
    /// pointer for the same reason.
    private let scriptCalls = UnsafeMutablePointer<[ScriptCommand]>.allocate(capacity: 1)
    private typealias ScriptCommand = (number: Int, nanoseconds: Int64, failed: Bool)
    /// The command whose work runs on another thread; nil if there is none.
    var pending: PendingNote?
    /// The command that waits until its database's files are open; counted as rejected if they cannot be opened.
    var preparing: CommandMetadata?

    /// The time of the event loop's turn, only for the loop's thread; nil for a session without a loop.
    let turnTime: UnsafeMutablePointer<TurnTime>?

    init(
        server: ServerState, counter: CommandCounter, record: ClientRecord,
        turnTime: UnsafeMutablePointer<TurnTime>?
    ) {
        self.server = server
        self.turnTime = turnTime
        self.counter = counter
        self.record = record
        untimed.initialize(to: UntimedCounts())
        scriptCalls.initialize(to: [])
    }

    deinit {
        untimed.deallocate()
        scriptCalls.deinitialize(count: 1)
        scriptCalls.deallocate()
    }

    /// One in 16 runs is timed. In the other runs, untimed commands are assumed to take the same average time.
    private static let runsPerSample = 16
    /// A run with fewer commands than this is short.
    static let shortRun = 16

    /// Begins a run of the session.
    /// - Returns: the time of the monotonic clock in nanoseconds if this run is timed, otherwise 0.
    func beginSample() -> Int64 {
        untimed.pointee.runs &+= 1
        return untimed.pointee.runs % Self.runsPerSample == 1 ? MonotonicClock.nanoseconds() : 0
    }

    /// Adds the commands of a run of the session to the statistics.
    /// - Parameters:
    ///   - count: the number of commands that have run, on any path.
    ///   - sample: the time when the timing of the run began (0 without timing), and how many commands ran before it.
    func noteRun(_ count: Int, _ now: Int64?, _ sample: (time: Int64, first: Int), outputBytes: Int) {
        counter.total.add(count)
        let done = untimed.pointee.earlier + untimed.pointee.count
        if done > 0 {
            // The measured time includes all commands. Use it only if none of them was timed alone.
            let timed = count - sample.first
            if sample.time != 0, done == count, timed > 0 {
                let (each, last) = (
                    max(0, MonotonicClock.nanoseconds() - sample.time) / Int64(timed), untimed.pointee.nanosecondsEach
                )
                // A short run may be much slower than the next ones: let it change the average only in part.
                untimed.pointee.nanosecondsEach = timed < Self.shortRun && last > 0 ? (3 * last + each) / 4 : each
            }
            noteUntimedCalls()
            untimed.pointee.earlier = 0
        }
        if let now { record.lastActivity.store(now, ordering: .relaxed) }
        record.outputBytes.store(outputBytes, ordering: .relaxed)
    }

    /// Counts an untimed call of the command with this row number. Assumes that it took the average duration.
    @inline(__always)
    func noteUntimed(_ number: Int) {
        if untimed.pointee.number != number {
            noteUntimedCalls()
            untimed.pointee.number = number
        }
        untimed.pointee.count += 1
    }

    private func noteUntimedCalls() {
        let (number, count) = (untimed.pointee.number, untimed.pointee.count)
        guard count > 0 else { return }
        counter.ran(number, times: count, nanosecondsEach: untimed.pointee.nanosecondsEach)
        record.lastCommand.store(number, ordering: .relaxed)
        untimed.pointee.earlier += count
        untimed.pointee.count = 0
    }

    /// Notes a command that a script has called.
    /// - Parameter nanoseconds: 0 in memory, where commands are not timed.
    func noteScriptCall(_ row: CommandMetadata, _ nanoseconds: Int64, failed: Bool) {
        scriptCalls.pointee.append((row.number, nanoseconds, failed))
    }

    /// Ends an attempt to run scripts. If the attempt was applied, adds the noted commands to the statistics.
    func endScriptCalls(areCounted: Bool) {
        while let call = scriptCalls.pointee.popLast() {
            if areCounted { counter.ran(call.number, nanoseconds: call.nanoseconds, failed: call.failed) }
        }
        if scriptCalls.pointee.capacity > Self.scriptCallsKept { scriptCalls.pointee = [] }
    }

    /// The maximum number of noted commands for which memory is kept.
    private static let scriptCallsKept = 64

    /// Counts a command that has run. If it was slow, adds it to SLOWLOG and LATENCY, unless the client has sent CLIENT
    /// NO-LOG ON.
    /// - Parameter word: returns the bytes of one of the command's `count` words.
    func note(
        _ spec: CommandMetadata, _ nanoseconds: Int64, _ failed: Bool, _ count: Int,
        _ word: (Int) -> UnsafeRawBufferPointer
    ) {
        counter.ran(spec.number, nanoseconds: nanoseconds, failed: failed)
        record.lastCommand.store(spec.number, ordering: .relaxed)
        if record.isUnlogged.load(ordering: .relaxed) { return }
        let microseconds = nanoseconds / 1000
        if microseconds >= 1000 {
            server.latency.note(
                spec.flags.contains(.fast) ? "fast-command" : "command", time: server.engine.now() / 1000,
                milliseconds: microseconds / 1000)
        }
        guard server.slowLog.takes(microseconds: microseconds), !spec.flags.contains(.skipSlowlog) else { return }
        let secrets = spec.secretRange(count, word)
        server.slowLog.add(
            time: server.engine.now() / 1000, microseconds: microseconds, count: count,
            word: { secrets.contains($0) ? CommandMetadata.redacted : word($0) }, address: record.address,
            name: record.known.name)
    }
}
