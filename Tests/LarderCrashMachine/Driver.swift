import LarderEngine
import LarderPlatform
import LarderTestSupport

/// Runs a series of daemons on one larder with a script that is generated from a seed. Records requests and replies
/// next to the trace of the daemons' file changes.
///
/// The script is deterministic; the scheduling of the daemon's threads is not.
final class Driver {
    let plan: RunPlan
    let history: History
    let faults: FaultControl
    let place: TemporaryDirectory
    private var dice: CommandDice
    private var daemon: DaemonProcess?
    /// The client of each connection. The first connection is for changes of whole databases.
    private var clients: [SocketClient?] = []
    /// A client that reads while the other clients write.
    private var reader: SocketClient?
    /// The range of possible differences between the engine's time and the system's clock, in milliseconds.
    private(set) var offsets: ClosedRange<Int64> = 0...0
    private var isFaulty = false
    private var isDying = false
    /// The actions so far, each with the length of the trace at that time, for messages.
    private(set) var trail: [(at: Int, text: String)] = []

    static func prefix(of connection: Int) -> String { String(UnicodeScalar(UInt8(96 + connection))) }

    /// The owner of a key; nil for keys without one.
    static func connection(of key: String) -> Int? {
        guard let first = key.utf8.first, (97..<105).contains(first) else { return nil }
        return Int(first) - 96
    }

    init(_ plan: RunPlan) throws {
        self.plan = plan
        history = History(connections: plan.connections, policy: plan.policy)
        place = try TemporaryDirectory(inMemory: true)
        faults = try FaultControl(in: place, traceBytes: 1 << 30)
        dice = CommandDice(SeededGenerator(seed: plan.seed &+ 1))
        if plan.movesClock { dice.lead = 36_000_000 }
    }

    private func note(_ text: String) { trail.append((faults.traceLength, text)) }

    /// The last actions before a position of the trace.
    func trail(_ count: Int, before cut: Int = .max) -> String {
        trail.prefix { $0.at <= cut }.suffix(count).map { "\($0.at): \($0.text)" }.joined(separator: "\n    ")
    }

    /// True in one of this many cases.
    private func oneIn(_ chances: Int) -> Bool { dice.random.oneIn(chances) }

    // MARK: Time

    private static var wall: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    private var earliestNow: Int64 { Self.wall + offsets.lowerBound - 1 }
    private var latestNow: Int64 { Self.wall + offsets.upperBound + 1 }

    /// The maximum difference between the engine's time and the clock time in a record of the trace, in milliseconds.
    var uncertainty: Int64 { offsets.upperBound - offsets.lowerBound + 2 }

    private func moveClock() {
        let span = [50, 3000, 30_000, 600_000].randomElement(using: &dice.random) ?? 50
        let offset = oneIn(2) ? Int64(span) : -Int64(span)
        note("clock \(offset) ms")
        // After a restart the larder cannot distinguish a forward step of the clock from elapsed time, so forward steps
        // add up.
        let forward = max(0, offset - faults.wallOffset / 1_000_000)
        offsets = min(offsets.lowerBound, offset)...(offsets.upperBound + forward)
        faults.wallOffset = offset * 1_000_000
    }

    // MARK: The run

    func run() throws {
        for life in 0..<plan.lives {
            if plan.movesClock, oneIn(2) { moveClock() }
            try start(life)
            var isOver = false
            for _ in 0..<plan.rounds where !isOver { isOver = try !round() }
            if !isOver { try end(isLast: life == plan.lives - 1) }
        }
        guard faults.isTraceComplete else { throw Finding("the trace is not complete") }
    }

    private func start(_ life: Int) throws {
        isDying = false
        isFaulty = false
        if plan.kind == .faults, life > 0, oneIn(3) { try startUnderFaults() }
        if daemon == nil { daemon = try DaemonProcess(plan.options(&dice.random), in: place, faults: faults) }
        note("life \(life) begins at \(faults.traceLength)")
        try connect()
        try judgeLive("after the start of life \(life)")
    }

    private func connect() throws {
        guard let daemon else { return }
        clients = try (0...plan.connections).map { _ in try daemon.connect() }
        reader = try daemon.connect()
    }

    /// Starts the daemon while system calls fail. The daemon may refuse to start, but must not lose data.
    private func startUnderFaults() throws {
        arm(FaultControl.Rule.random(atStart: true, &dice.random))
        note("starting while calls fail")
        daemon = try? DaemonProcess(plan.options(&dice.random), in: place, faults: faults)
        note(daemon == nil ? "did not start, \(faults.lastHit)" : "started, \(faults.hits(slot: 0)) calls failed")
        faults.disarm()
        // Do not use a daemon that was started under faults, because it may reply with errors for a while. Stop or kill
        // it.
        if let daemon, oneIn(2) { try daemon.stop() }
        try bury()
    }

    private func arm(_ rule: FaultControl.Rule) {
        note("armed: \(rule)")
        faults.arm(rule)
    }

    /// - Returns: false if the daemon is dead.
    private func round() throws -> Bool {
        if plan.kind == .faults { try changeFaults() }
        if plan.movesClock, oneIn(40) { moveClock() }
        switch Int.random(in: 0..<40, using: &dice.random) {
        case 0..<2: try swap()
        case 2: try flushAll()
        case 3..<5: try save()
        default: try burst()
        }
        if isDying, daemon?.process.hasEnded() ?? true {
            note("dead: \(faults.lastHit)")
            try bury()
            return false
        }
        return true
    }

    private func changeFaults() throws {
        if isFaulty, oneIn(4) {
            faults.disarm()
            isFaulty = false
            note("disarmed after \(faults.hits(slot: 0)) hits, the last: \(faults.lastHit)")
            if oneIn(2) { try awaitWrites() }
        } else if !isFaulty, oneIn(5) {
            isFaulty = true
            arm(FaultControl.Rule.random(atStart: false, &dice.random))
            if oneIn(6) {
                isDying = true
                let number = UInt64.random(in: 1...60, using: &dice.random)
                faults.arm(.killing(.changing, at: number, after: oneIn(2)), slot: 1)
                note("killed at \(number)")
            }
        }
    }

    private func end(isLast: Bool) throws {
        faults.disarm()
        note("\(faults.hits) calls were hit so far")
        if oneIn(3) {
            note("clean end")
            let moment = history.nextMoment()
            let end = try daemon?.stop()
            // In a run that kills the daemon at a chosen call, the daemon may have reached that call while stopping.
            guard end == .exited(0) || isDying else {
                throw Finding("SIGTERM ended in \(String(describing: end))")
            }
            guard end == .exited(0) else { return try bury() }
            history.noteSync(of: moment, at: faults.traceLength)
        } else if oneIn(3) {
            // Kills the daemon at a random call during bursts of commands.
            isDying = true
            let number = UInt64.random(in: 1...30, using: &dice.random)
            faults.arm(.killing(.changing, at: number, after: oneIn(2)), slot: 1)
            note("killed at \(number)")
            for _ in 0..<20 where daemon?.process.hasEnded() == false { try burst() }
        } else {
            note("SIGKILL")
        }
        try bury()
    }

    private func bury() throws {
        if let daemon { try faults.kill(daemon) }
        faults.disarm()
        daemon = nil
        clients = []
        reader = nil
    }

    /// After the faults have ended, waits until writes are accepted again, unless the daemon is dead by then.
    private func awaitWrites() throws {
        guard let client = clients[History.control] else { return }
        do { try awaitWrites(client) } catch  where !(error is Finding) { try lost(error) }
    }

    private func awaitWrites(_ client: SocketClient) throws {
        var last = ""
        for database in CommandDice.databases {
            let limit = Self.wall + 30_000
            while true {
                try client.send(["SELECT", database])
                try client.send(["SET", "z:again", "1"])
                let replies = try client.receive(2)
                if !replies.contains(where: Reply.isError) { break }
                last = Reply.text(replies[1])
                guard Self.wall < limit else {
                    throw Finding("half a minute after calls stopped failing, '\(database)' says \(last)")
                }
                nap()
            }
            try client.send(["DEL", "z:again"])
            _ = try client.receive()
        }
    }

    // MARK: Bursts

    /// A unit that was sent, and how to read its outcome from the replies.
    private struct Sent {
        let unit: Unit
        let now: Keyspace.Instant
        /// The number of replies. The last reply shows whether the unit happened.
        let replies: Int
    }

    /// Sends commands on all connections at once, sometimes together with a change of a whole database that these
    /// commands do not use.
    private func burst() throws {
        let shunned: String? = oneIn(5) ? dice.database() : nil
        var sent: [(connection: Int, units: [Sent])] = []
        var order = Array(1...plan.connections)
        order.shuffle(using: &dice.random)
        if oneIn(4) { try lookAround() }
        for connection in order {
            sent.append((connection, try send(connection, shunning: shunned)))
            if connection == order[order.count / 2], let shunned { sent.append((0, try changeWhole(shunned))) }
        }
        if oneIn(2) { sent.reverse() }
        for (connection, units) in sent { try receive(connection, units) }
        if let reader, isFaulty == false, waitingForReader > 0 {
            do { _ = try reader.receive(waitingForReader) } catch { try lost(error) }
        }
        waitingForReader = 0
    }

    private var waitingForReader = 0

    /// Sends a command that reads whole databases, opens or closes a snapshot, or makes a checkpoint.
    private func lookAround() throws {
        guard let reader, !isFaulty else { return }
        let line = ["KEYS *", "DBSIZE", "SCAN 0 COUNT 7", "SNAPSHOT OPEN", "SNAPSHOT CLOSE", "DATABASES", "BGSAVE"]
            .randomElement(using: &dice.random)
        do {
            try reader.send(encodeRequest("SELECT \(dice.database())") + encodeRequest(line ?? "PING"))
            waitingForReader = 2
        } catch { try lost(error) }
    }

    /// Ignores a lost connection if the daemon is expected to die; otherwise throws a finding.
    private func lost(_ error: any Error) throws {
        guard isDying else { throw Finding("a connection was lost: \(error)") }
    }

    private func send(_ connection: Int, shunning shunned: String?) throws -> [Sent] {
        guard let client = clients[connection] else { return [] }
        // If calls fail, each unanswered unit may or may not have happened, so only one unit is sent at a time.
        let count = plan.kind == .faults || isDying ? 1 : Int.random(in: 1...6, using: &dice.random)
        var keyspace = history.keyspace(of: connection)
        var bytes: [UInt8] = []
        var sent: [Sent] = []
        let at = faults.traceLength
        for _ in 0..<count {
            let (commands, words) = unit(connection, shunned)
            let now = Keyspace.Instant(earliest: earliestNow)
            let changes = keyspace.changes(by: commands, now: now)
            keyspace.apply(changes)
            let text = commands.map(\.text).joined(separator: " | ")
            let unit = history.send(connection: connection, at: at, changes, text)
            note("\(Self.prefix(of: connection))\(unit.index) \(text)")
            sent.append(Sent(unit: unit, now: now, replies: words.count))
            for word in words { bytes += encodeRequest(word) }
        }
        do { try client.send(bytes) } catch {
            clients[connection] = nil
            try lost(error)
        }
        return sent
    }

    private func unit(_ connection: Int, _ shunned: String?) -> (commands: [Command], words: [[[UInt8]]]) {
        let prefix = Self.prefix(of: connection)
        let select = { (name: String) in [Array("SELECT".utf8), Array(name.utf8)] }
        if plan.hasLongValues, shunned == nil, oneIn(60) {
            let command = dice.longCommand(prefix)
            return ([command], [select(command.database), command.words])
        }
        guard oneIn(6) else {
            let command = dice.command(prefix, shunning: shunned, now: latestNow)
            return ([command], [select(command.database), command.words])
        }
        var commands: [Command] = []
        while commands.count < 4 {
            let command = dice.command(prefix, shunning: shunned, now: latestNow)
            if command.neverFails { commands.append(command) }
        }
        let words = commands.flatMap { [select($0.database), $0.words] }
        return (commands, [[Array("MULTI".utf8)]] + words + [[Array("EXEC".utf8)]])
    }

    private func receive(_ connection: Int, _ units: [Sent]) throws {
        for sent in units {
            guard let client = clients[connection] else { return }
            let replies: [[UInt8]]
            do { replies = try client.receive(sent.replies) } catch {
                clients[connection] = nil
                try lost(error)
                return
            }
            let isDone = !Reply.hasError(replies[replies.count - 1])
            sent.now.latest = latestNow
            if sent.unit.connection == History.control { note("control \(sent.unit.index) answered") }
            let isKnown = !Reply.saysThatItMayCount(replies[replies.count - 1])
            history.answer(sent.unit, done: isDone, isKnown: isKnown, at: faults.traceLength)
            if !isDone {
                note(
                    "refused \(Self.prefix(of: connection))\(sent.unit.index): \(Reply.text(replies[replies.count - 1]))"
                )
            }
            // If `SELECT` failed, the next command was applied to another database.
            if let error = replies.dropLast().first(where: Reply.isError) {
                throw Finding("a command before '\(sent.unit.text)' was answered \(Reply.text(error))")
            }
            let isControl = sent.unit.connection == History.control
            let mustSucceed = isControl ? history.fact(by: sent.unit) != nil : !sent.unit.changes.isEmpty
            if !isDone, plan.kind == .crash, mustSucceed {
                throw Finding("'\(sent.unit.text)' was answered \(Reply.text(replies[replies.count - 1]))")
            }
        }
    }

    // MARK: Whole databases

    private func sendControl(
        _ lines: [String], _ changes: Keyspace.Changes, whole: Set<Scope> = []
    ) throws -> [Sent] {
        try sendControl(lines.map { $0.split(separator: " ").map(String.init) }, changes, whole: whole, fact: nil)
    }

    private func sendControl(
        _ lines: [[String]], _ changes: Keyspace.Changes = [:], whole: Set<Scope> = [], fact: (Fact, String)?
    ) throws -> [Sent] {
        guard let client = clients[History.control] else { return [] }
        let text = lines.map { $0.joined(separator: " ") }.joined(separator: "; ")
        let unit = history.send(
            connection: History.control, at: faults.traceLength, changes, whole: whole, text)
        if let (fact, value) = fact { history.note(fact, value, by: unit) }
        note("control \(unit.index) \(unit.text)")
        do { try client.send(lines.flatMap { line in encodeRequest(line.map { Array($0.utf8) }) }) } catch {
            clients[History.control] = nil
            try lost(error)
        }
        return [Sent(unit: unit, now: Keyspace.Instant(earliest: earliestNow), replies: lines.count)]
    }

    /// All entries of all connections in the given databases.
    private func everything(in databases: [String]) -> [Keyspace.Place: Keyspace.Entry] {
        var all: [Keyspace.Place: Keyspace.Entry] = [:]
        for connection in 1...plan.connections {
            all.merge(history.keyspace(of: connection).entries.filter { databases.contains($0.key.database) }) { $1 }
        }
        return all
    }

    private func changeWhole(_ database: String) throws -> [Sent] {
        let select = "SELECT \(database)"
        let all = everything(in: [database])
        switch Int.random(in: 0..<26, using: &dice.random) {
        case 14..<21:
            let (words, then) = dice.functions(history.value(of: .functions))
            return try sendControl([words], fact: (.functions, then))
        case 21..<26:
            let name = CommandDice.cachingDatabases.randomElement(using: &dice.random) ?? ""
            let (words, then) = dice.origin()
            return try sendControl([["SELECT", name], words], fact: (.origin(name), then))
        case 0..<3:
            return try sendControl(
                [select, oneIn(2) ? "FLUSHDB" : "PURGE"], all.mapValues { _ in nil }, whole: [Scope(database)])
        case 10..<14:
            let tag = dice.tag()
            let gone = all.filter { $0.value.tags.contains(tag) }.mapValues { _ in nil as Keyspace.Entry? }
            // Uses no soft purges if the clock moves: stale entries may become fresh again if the larder's time goes
            // back.
            let soft = !plan.movesClock && oneIn(2) ? " SOFT" : ""
            return try sendControl([select, "PURGE TAG \(tag)\(soft)"], gone, whole: [Scope(database, tag)])
        case 3..<6:
            let connection = Int.random(in: 1...plan.connections, using: &dice.random)
            let prefix = Self.prefix(of: connection) + (oneIn(2) ? ":" : ":1")
            let gone = all.filter { $0.key.key.hasPrefix(prefix) }.mapValues { _ in nil as Keyspace.Entry? }
            return try sendControl([select, "PURGE PREFIX \(prefix)"], gone)
        case 6: return try sendControl([select, "PURGE EXPIRED"], [:])
        default:
            let policy = [UpdatePolicy.low, .lowest, .never].randomElement(using: &dice.random) ?? .never
            return try sendControl(
                [["SELECT", database], ["POLICY", "\(policy)"]], fact: (.policy(database), policy.description))
        }
    }

    private func flushAll() throws {
        // If FLUSHALL fails half-way, some databases are already empty. A separate FLUSHDB for each database makes the
        // outcome known.
        if plan.kind == .faults {
            for name in CommandDice.databases {
                let gone = everything(in: [name]).mapValues { _ in nil as Keyspace.Entry? }
                try receive(0, sendControl(["SELECT \(name)", "FLUSHDB"], gone, whole: [Scope(name)]))
            }
            return
        }
        // FLUSHALL does not create missing databases. An accident may leave only some of the databases empty.
        let all = everything(in: CommandDice.databases)
        try receive(
            0,
            sendControl(
                ["FLUSHALL"], all.mapValues { _ in nil }, whole: Set(CommandDice.databases.map { Scope($0) })))
    }

    private func swap() throws {
        // If SIGKILL follows a clock step, the larder may forget that entries had expired. SWAPDB does not move expired
        // entries, so the model could not predict which entries were moved.
        if plan.movesClock { return }
        let all = everything(in: ["0", "1"])
        var changes: Keyspace.Changes = [:]
        for (place, _) in all { changes[place] = .some(nil) }
        for (place, entry) in all {
            changes[Keyspace.Place(database: place.database == "0" ? "1" : "0", key: place.key)] = entry
        }
        try receive(0, sendControl(["SWAPDB 0 1"], changes))
    }

    private func save() throws {
        guard let client = clients[History.control] else { return }
        let moment = history.nextMoment()
        do {
            guard try client.call("SAVE") == "+OK\r\n" else { return }
            history.noteSync(of: moment, at: faults.traceLength)
            note("saved at \(faults.traceLength)")
        } catch { try lost(error) }
    }

    // MARK: Checking the state

    /// Compares the daemon's state with the history, and then decides whether each open unit happened.
    private func judgeLive(_ when: String) throws {
        guard let client = clients[History.control] else { return }
        let before = earliestNow
        var found = FoundState(now: before...before, latest: latestNow)
        for name in CommandDice.databases {
            _ = try client.call("SELECT \(name)")
            let policy = Reply.bulks(Array(try client.call("POLICY").utf8))
            let keys = try keys(client)
            guard let text = policy.dropFirst().first ?? nil,
                let policy = UpdatePolicy(String(decoding: text, as: UTF8.self))
            else { throw Finding("POLICY of '\(name)' says \(policy)") }
            var database = FoundState.Database(policy: policy)
            if !keys.isEmpty {
                try client.send(encodeRequest([Array("MGET".utf8)] + keys))
                let reply = try client.receive()
                if Reply.isError(reply) { throw Finding("MGET in '\(name)' \(when) says \(Reply.text(reply))") }
                for (key, value) in zip(keys, Reply.bulks(reply)) {
                    database.entries[String(decoding: key, as: UTF8.self)] = value
                }
            }
            found.databases[name] = database
        }
        found.facts = try facts(client)
        found.now = before...latestNow
        found.latest = latestNow
        switch Judge(history: history, durability: plan.durability).judge(found, cut: faults.traceLength, power: false)
        {
        case .broken(let text):
            throw Finding("\(when):\n\(text)\nlog: \(daemon?.process.errors ?? "")")
        case .promised(let explanation): settle(explanation, found)
        }
    }

    private func facts(_ client: SocketClient) throws -> [Fact: String] {
        var facts: [Fact: String] = [:]
        try client.send(["FUNCTION", "DUMP"])
        let dump = try client.receive()
        guard !Reply.isError(dump) else { throw Finding("FUNCTION DUMP says \(Reply.text(dump))") }
        facts[.functions] = try StoredFacts.functions(RawReply.bulk(dump))
        for name in CommandDice.cachingDatabases {
            try client.send(["SELECT", name])
            try client.send(["ORIGIN"])
            let reply = try client.receive(2)[1]
            let words = Reply.bulks(reply).map { String(decoding: $0 ?? [], as: UTF8.self) }
            guard words.count > 1, words[0] == "url" else { throw Finding("ORIGIN says \(Reply.text(reply))") }
            facts[.origin(name)] =
                words.count > 5
                ? "\(words[1]) \(words[3].uppercased())" + (words[5] == "yes" ? " STALE" : "") : Fact.none
        }
        return facts
    }

    private func keys(_ client: SocketClient) throws -> [[UInt8]] {
        try client.send(["KEYS", "*"])
        let reply = try client.receive()
        if Reply.isError(reply) { throw Finding("KEYS says \(Reply.text(reply))") }
        return Reply.bulks(reply).compactMap { $0 }.filter { !$0.starts(with: Array("z:".utf8)) }
    }

    private func settle(_ explanation: Judge.Explanation, _ found: FoundState) {
        let facts = found.allFacts
        for unit in history.doubtful {
            guard let (fact, value) = history.fact(by: unit) else { continue }
            history.settle(unit, happened: facts[fact] == value, at: faults.traceLength)
        }
        for unit in history.doubtful where !unit.scopes.isEmpty {
            let happened = !unit.scopes.isDisjoint(with: explanation.whole)
            note("control \(unit.index) was refused and \(happened ? "happened" : "did not happen")")
            history.settle(unit, happened: happened, at: faults.traceLength)
        }
        for unit in history.doubtful where history.isSeen(unit, explanation.counts, found) {
            history.doubt(unit)
            note("\(unit.connection):\(unit.index) was refused and happened")
            history.answer(unit, done: true, at: faults.traceLength)
        }
        for (connection, units) in history.units.enumerated() {
            for unit in units where unit.outcome == .open {
                if let (fact, value) = history.fact(by: unit) {
                    let happened = facts[fact] == value
                    note("control \(unit.index) \(happened ? "happened" : "did not happen")")
                    history.answer(unit, done: happened, at: faults.traceLength)
                } else if unit.scopes.isEmpty {
                    let happened = unit.index < explanation.counts[connection]
                    if happened { history.doubt(unit) }
                    note("\(connection):\(unit.index) \(happened ? "happened" : "did not happen")")
                    history.answer(unit, done: happened, at: faults.traceLength)
                } else {
                    history.narrow(unit, to: unit.scopes.intersection(explanation.whole))
                    note("control \(unit.index) happened to \(unit.scopes)")
                    history.answer(unit, done: true, at: faults.traceLength)
                }
                for case .some(let entry) in unit.changes.values where entry.storedAt.latest > latestNow {
                    entry.storedAt.latest = latestNow
                }
            }
        }
    }
}

extension Command {
    /// Whether an error proves that nothing was committed.
    var neverFails: Bool {
        switch action {
        case .set, .setTagged, .setMany, .append, .setRange, .increment, .delete, .expire, .persist: true
        case .setIfAbsent, .copy, .rename, .move: false
        }
    }
}
