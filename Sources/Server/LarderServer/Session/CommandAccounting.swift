import LarderCommandCatalog
import LarderPlatform
import LarderRESP

/// The counts of fast-path commands, which are not reported individually.
struct FastPathCounts {
    var get = 0
    var set = 0
    var ping = 0
    var mget = 0
    var fetch = 0
    var eval = 0
    var evalsha = 0
    var fcall = 0
    /// Commands of ``QuickCommands``, which are counted individually.
    var quick = 0
    /// How many more commands may use the last reading of the clock. A command counts as one, plus one for each KiB
    /// that it copies.
    var workLeft = 0
    /// The average duration of a command in the last timed run.
    var nanosecondsEach: Int64 = 0
    /// The number of runs of the session, which determines the runs that are timed.
    var runs = 0

    /// The number of commands for one reading of the clock: some tens of microseconds of work.
    static let workPerTime = 64
}

/// A deferred command, which is counted when its work is done.
struct PendingNote {
    let row: CommandMetadata
    /// Nil to use the parser's words.
    let command: QueuedCommand?
    /// The position at which its reply starts; nil in a transaction.
    let start: Int?
}

/// Owns the counts, times and log entries of one connection's commands, and the record that other threads may read.
///
/// Used by the owner of its session only.
final class CommandAccounting {
    let server: ServerState
    let counter: CommandCounter
    /// The record of the connection for other threads.
    let record: ClientRecord
    /// The commands on the fast path since the last ``noteRun(_:_:_:outputBytes:)``. A pointer avoids the exclusivity
    /// checks on a class's stored properties.
    let fastPath = UnsafeMutablePointer<FastPathCounts>.allocate(capacity: 1)
    /// The running deferred command, which is counted when its work is done.
    var pending: PendingNote?
    /// The command that waits until its database is open; it is refused if that fails.
    var preparing: CommandMetadata?

    init(server: ServerState, counter: CommandCounter, record: ClientRecord) {
        self.server = server
        self.counter = counter
        self.record = record
        fastPath.initialize(to: FastPathCounts())
    }

    deinit { fastPath.deallocate() }

    /// The numbers of the fast-path commands.
    private static let numbers = (
        get: CommandMetadata.get.number, set: CommandMetadata.set.number, ping: CommandMetadata.ping.number,
        mget: CommandMetadata.mget.number, fetch: CommandMetadata.fetch.number,
        eval: CommandMetadata.eval.number, evalsha: CommandMetadata.evalsha.number,
        fcall: CommandMetadata.fcall.number
    )

    /// Every 16th run of the session is timed. Fast-path commands in other runs are assumed to take as long.
    private static let runsPerSample = 16

    /// - Returns: the start of this run of the session if it is timed, otherwise 0.
    func beginSample() -> Int64 {
        fastPath.pointee.runs &+= 1
        return fastPath.pointee.runs % Self.runsPerSample == 1 ? MonotonicClock.nanoseconds() : 0
    }

    /// Counts the commands of a run of the session.
    /// - Parameters:
    ///   - count: all commands.
    ///   - sample: the result of ``beginSample()``.
    func noteRun(_ count: Int, _ now: Int64?, _ sample: Int64, outputBytes: Int) {
        counter.total.add(count)
        let done = fastPath.pointee
        let doneCount =
            done.get + done.set + done.ping + done.mget + done.fetch + done.eval + done.evalsha
            + done.fcall + done.quick
        if doneCount > 0 {
            // Skip runs in which other commands ran too, because the time includes them.
            if sample != 0, doneCount == count {
                fastPath.pointee.nanosecondsEach = max(0, MonotonicClock.nanoseconds() - sample) / Int64(doneCount)
            }
            note(Self.numbers.get, done.get)
            note(Self.numbers.set, done.set)
            note(Self.numbers.ping, done.ping)
            note(Self.numbers.mget, done.mget)
            note(Self.numbers.fetch, done.fetch)
            note(Self.numbers.eval, done.eval)
            note(Self.numbers.evalsha, done.evalsha)
            note(Self.numbers.fcall, done.fcall)
            fastPath.pointee.get = 0
            fastPath.pointee.set = 0
            fastPath.pointee.ping = 0
            fastPath.pointee.mget = 0
            fastPath.pointee.fetch = 0
            fastPath.pointee.eval = 0
            fastPath.pointee.evalsha = 0
            fastPath.pointee.fcall = 0
            fastPath.pointee.quick = 0
        }
        if let now { record.lastActivity.store(now, ordering: .relaxed) }
        record.outputBytes.store(outputBytes, ordering: .relaxed)
    }

    /// Counts one command of ``QuickCommands``, with the last measured duration of the fast path.
    func noteQuick(_ number: Int) {
        fastPath.pointee.quick += 1
        note(number, 1)
    }

    private func note(_ number: Int, _ count: Int) {
        guard count > 0 else { return }
        counter.ran(number, times: count, nanosecondsEach: fastPath.pointee.nanosecondsEach)
        record.lastCommand.store(number, ordering: .relaxed)
    }

    /// Counts a command that ran, and logs it if it was slow, unless its connection is unlogged.
    /// - Parameter word: returns one of the `count` words of its call.
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
