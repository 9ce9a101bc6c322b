import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Runs commands that need only entries in memory. Creates no ``Call`` and no ``Key``, and allocates no memory. If a
/// plan needs more, nothing is done, and ``Call/perform(_:)`` executes the plan.
///
/// Only for connections whose ``Prechecks`` allow the command, because nothing is checked here. Has no state, so
/// creating it costs nothing. Used only by the session's owner.
struct InMemoryRunner {
    let session: Session
    var server: ServerState { session.server }
    var accounting: CommandAccounting { session.accounting }

    /// The limits of one call of ``run(now:_:_:)``.
    struct Limit {
        let commandsMax: Int
        let outputBytesMax: Int
        /// The time limit for reading the disk, in milliseconds of the monotonic clock; nil on a thread that must not
        /// block.
        let until: Int64?
    }

    /// A planned command: its row (not reference-counted), and its end as a distance in bytes from the end of the
    /// current command.
    typealias Planned = (row: Unmanaged<CommandMetadata>, end: Int)

    /// The maximum number of commands whose entries are looked up together. The CPU does not load the memory of more
    /// entries in parallel.
    private static let unitsMax = 16
    /// The maximum number of GETs whose keys are requested from the origin together.
    private static let originUnitsMax = 64

    /// Plans the current command, and runs it if it needs only memory. If its plan is a single read or write of an
    /// entry (a unit), also plans the next commands, and runs those that are units, too. Their entries are looked up
    /// together, so that the CPU loads the memory of the entries in parallel.
    /// - Parameter plan: set to the current command's plan if the command must still run.
    /// - Returns: the number of commands that have run, and whether the next one is a read that needs the disk.
    func run(now: Int64, _ limit: Limit, _ plan: inout EntryPlan?) -> (count: Int, needsDisk: Bool) {
        let arguments = session.parserMemory.pointee.currentArguments()
        guard let planner = runnable(arguments), arguments.count <= Limits.loopArgumentsMax,
            arguments.byteCount <= Limits.loopBytesMax
        else { return (0, false) }
        return planner._withUnsafeGuaranteedRef { run($0, arguments, now: now, limit, &plan) }
    }

    @inline(__always)
    private func run(
        _ planner: CommandPlanner, _ arguments: RequestArguments, now: Int64, _ limit: Limit, _ plan: inout EntryPlan?
    ) -> (count: Int, needsDisk: Bool) {
        let (parser, length) = (session.parserMemory, session.replyMemory.pointee.count)
        let (row, bytes) = (planner.row, arguments.byteCount)
        let words = CallWords(source: .request(arguments), row: row, server: server, now: now)
        guard planner.hasFunction else {
            guard row.flags.contains(.runsScript), runScript(words, row) else { return (0, false) }
            noteAlone(row, work: 5, bytes: bytes + session.replyMemory.pointee.count - length)
            return (1, false)
        }
        guard let made = try? planner.plan(words) else { return (0, false) }
        guard let first = unit(made, words) else {
            guard perform(made, row, words) else {
                plan = made
                return (0, false)
            }
            noteAlone(row, work: 1, bytes: bytes + session.replyMemory.pointee.count - length)
            return (1, false)
        }
        let most = session.prechecks.allowsOriginGets ? Self.originUnitsMax : Self.unitsMax
        let capacity = parser.pointee.hasNext ? max(1, min(most, limit.commandsMax)) : 1
        return withUnsafeTemporaryAllocation(of: EntryUnit.self, capacity: capacity) { units in
            withUnsafeTemporaryAllocation(of: Planned.self, capacity: capacity) { planned in
                units.initializeElement(at: 0, to: first)
                planned.initializeElement(at: 0, to: (.passUnretained(row), 0))
                let count = capacity > 1 ? planAhead(made, units, planned, now) : 1
                let found = UnsafeMutableBufferPointer(rebasing: units[..<count])
                let done =
                    if session.prechecks.allowsOriginGets {
                        (count: replyBehindOrigin(found, planned, now, limit), needsDisk: false)
                    } else {
                        execute(found, planned[...], now, limit)
                    }
                guard done.count > 0 else {
                    plan = made
                    return done
                }
                let end = planned[done.count - 1].end
                parser.pointee.skip(to: end)
                noteWork(done.count, bytes: bytes + end + session.replyMemory.pointee.count - length)
                return done
            }
        }
    }

    /// Returns the planner of a command that may run here; nil for other commands.
    @inline(__always)
    private func runnable(_ arguments: RequestArguments) -> Unmanaged<CommandPlanner>? {
        guard let planner = CommandTable.find(arguments[0], &session.commandMemory.pointee) else { return nil }
        let mayRun = planner._withUnsafeGuaranteedRef { planner in
            planner.row.accepts(argumentCount: arguments.count)
                && (planner.row == .get || session.prechecks.allowsAll && !server.isCongested)
        }
        return mayRun ? planner : nil
    }

    /// Counts a command that has run by itself, not as a unit.
    @inline(__always)
    private func noteAlone(_ row: CommandMetadata, work: Int, bytes: Int) {
        accounting.noteUntimed(row.number)
        noteWork(work, bytes: bytes)
    }

    /// Subtracts the work of commands from ``UntimedCounts/workLeft``. At 0, the clock is read again.
    @inline(__always)
    private func noteWork(_ work: Int, bytes: Int) { accounting.untimed.pointee.workLeft -= work + bytes >> 10 }

    // MARK: Units

    /// Returns the only read or write of a plan; nil if the plan needs more.
    @inline(__always)
    private func unit(_ plan: EntryPlan, _ words: CallWords) -> EntryUnit? {
        switch plan {
        case .value(let index): EntryUnit(reading: words.bytes(index))
        case .store(let options) where options.isUnconditional && !server.notifier.needsPrevious:
            options.rule(nil, session.database.rules, now: words.now).map {
                EntryUnit(storing: words.bytes(2), under: words.bytes(1), $0)
            }
        default: nil
        }
    }

    /// Plans the commands after the current one. Stops before the first one whose plan is not a unit.
    /// - Parameter plan: the plan of the current command.
    /// - Returns: the number of units, including the first one.
    private func planAhead(
        _ plan: EntryPlan, _ units: UnsafeMutableBufferPointer<EntryUnit>,
        _ planned: UnsafeMutableBufferPointer<Planned>, _ now: Int64
    ) -> Int {
        withUnsafeTemporaryAllocation(of: ArgumentSlice.self, capacity: 8) { slices in
            var (count, end, head) = (1, 0, session.parserMemory.pointee.currentHead())
            var keyIndex = if case .value(let index) = plan { index } else { 0 }
            while count < units.count, let arguments = session.parserMemory.pointee.requestAhead(&end, &head, slices) {
                if !head.isRepeated || keyIndex == 0 {
                    guard let planner = runnable(arguments) else { break }
                    let isUnit = planner._withUnsafeGuaranteedRef { planner in
                        let words = CallWords(source: .request(arguments), row: planner.row, server: server, now: now)
                        guard let plan = try? planner.plan(words), let unit = unit(plan, words) else { return false }
                        if case .value(let index) = plan { keyIndex = index } else { keyIndex = 0 }
                        units.initializeElement(at: count, to: unit)
                        planned.initializeElement(at: count, to: (.passUnretained(planner.row), end))
                        return true
                    }
                    guard isUnit else { break }
                } else {
                    units.initializeElement(at: count, to: EntryUnit(reading: arguments[keyIndex]))
                    planned.initializeElement(at: count, to: (planned[count - 1].row, end))
                }
                count += 1
            }
            return count
        }
    }

    /// Executes units in memory, and reads from the disk if the limit allows it.
    /// - Parameter mustExist: whether to stop at a key without a fresh entry, instead of replying with null.
    /// - Returns: the number of replies, and whether the next unit is a read that needs the disk.
    func execute(
        _ units: UnsafeMutableBufferPointer<EntryUnit>, _ planned: Slice<UnsafeMutableBufferPointer<Planned>>,
        _ now: Int64, _ limit: Limit, mustExist: Bool = false
    ) -> (count: Int, needsDisk: Bool) {
        let (replies, sent, bytesMax) = (session.replyMemory, session.replyQueue.sentBytes, limit.outputBytesMax)
        var stops = 0
        let run = session.prechecks.database._withUnsafeGuaranteedRef { database in
            database.run(units, now: now, origin: session.prechecks.setOrigin) { index, ticket, payload in
                let start = sent + replies.pointee.count
                if units[index].isWrite {
                    replies.pointee.raw("+OK\r\n")
                } else if let payload {
                    replies.pointee.bulk(payload)
                } else if mustExist {
                    stops = 1
                    return false
                } else {
                    replies.pointee.null()
                }
                session.replyQueue.hold(from: start, ticket)
                return replies.pointee.count <= bytesMax
            }
        }
        for command in planned.prefix(run.count - stops) { note(command.row) }
        guard run.needsDisk, let until = limit.until else { return (run.count - stops, run.needsDisk) }
        var count = run.count
        while count < units.count, !units[count].isWrite, replies.pointee.count <= bytesMax,
            session.clock.monotonic() < until
        {
            let (key, row) = (units[count].key, planned[planned.startIndex + count].row.takeUnretainedValue())
            let (begin, start) = (MonotonicClock.nanoseconds(), session.replyQueue.position)
            var ticket = CommitTicket.none
            // Reads of the disk take long, so read the clock for each of them. If the read fails, the command runs
            // again by itself, and replies with the error.
            let outcome = try? session.prechecks.database.takeUnretainedValue().read(
                key, now: session.clock.now(), .mayBlock, ticket: &ticket
            ) { record, _ in
                replies.pointee.bulk(record.payload)
            }
            guard let outcome else { break }
            if outcome == .miss { replies.pointee.null() }
            session.replyQueue.hold(from: start, ticket)
            var name = row.name
            name.withUTF8 { name in
                accounting.note(row, MonotonicClock.nanoseconds() - begin, false, 2) {
                    $0 == 0 ? UnsafeRawBufferPointer(name) : key
                }
            }
            count += 1
        }
        return (count, false)
    }

    /// Counts a command that was not timed.
    @inline(__always)
    func note(_ row: Unmanaged<CommandMetadata>) {
        accounting.noteUntimed(row._withUnsafeGuaranteedRef { $0.number })
    }
}
