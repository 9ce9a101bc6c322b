import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderServer

/// Tests of the parts of a session's state, each without a session.
@Suite struct SessionStateTests {
    /// The words of a command, as a parser provides them. The memory is never released.
    private struct Words {
        let all: [UnsafeRawBufferPointer]

        init(_ line: String) {
            all = line.split(separator: " ").map { word in
                let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: word.utf8.count, alignment: 1)
                bytes.copyBytes(from: word.utf8)
                return UnsafeRawBufferPointer(bytes)
            }
        }
    }

    // MARK: Commands in memory

    @Test("all commands run without checks only for clients that may write, in no mode, and without an origin")
    func conditionsForSkippingChecks() throws {
        let server = try SocketlessServer()
        var state = Prechecks(client: 1, server.state.standardDatabase, areUsed: true)
        #expect(!state.allowsAll && !state.mayRunInMemory(isNew: true, isOnLoop: true))
        state.update(isPlain: true, .write, checksOrigin: false, hasOrigin: false)
        #expect(state.allowsAll && state.allowsGets && !state.allowsOriginGets)
        state.update(isPlain: true, .read, checksOrigin: false, hasOrigin: false)
        #expect(!state.allowsAll && state.mayRunInMemory(isNew: true, isOnLoop: false))
        state.update(isPlain: true, nil, checksOrigin: false, hasOrigin: false)
        #expect(!state.allowsAll && !state.mayRunInMemory(isNew: true, isOnLoop: true))
        state.update(isPlain: false, .write, checksOrigin: false, hasOrigin: true)
        #expect(!state.allowsAll && !state.mayRunInMemory(isNew: true, isOnLoop: true))
    }

    @Test("new GETs of a database with an origin run without checks only on an event loop")
    func skippingChecksWithAnOrigin() throws {
        let server = try SocketlessServer()
        var state = Prechecks(client: 1, server.state.standardDatabase, areUsed: true)
        state.update(isPlain: true, .write, checksOrigin: true, hasOrigin: true)
        #expect(!state.allowsAll && state.allowsOriginGets)
        #expect(state.mayRunInMemory(isNew: true, isOnLoop: true))
        #expect(!state.mayRunInMemory(isNew: false, isOnLoop: true))
        #expect(!state.mayRunInMemory(isNew: true, isOnLoop: false))
        state.update(isPlain: true, .write, checksOrigin: true, hasOrigin: false)
        #expect(!state.mayRunInMemory(isNew: true, isOnLoop: true))
    }

    // MARK: The current command

    @Test("a repeated command is found by its name, unless it has none of the short names")
    func repeatedCommandsAreFoundByName() {
        var command = CurrentCommand()
        let (get, set) = (ShortWord("get"), ShortWord("set"))
        #expect(!command.isNamed(get))
        command.note(CommandTable.spec(.get).planner, get)
        #expect(command.isNamed(get) && !command.isNamed(set) && command.row == .get)
        #expect(command.planner?.takeUnretainedValue().hasFunction == true)
        command.note(CommandTable.spec(.subscribe).planner, .other)
        #expect(command.row == .subscribe && !command.isNamed(.other))
        #expect(command.planner?.takeUnretainedValue().hasFunction == false)
    }

    @Test("long values are built only on the thread for long values, which ends the need for it")
    func longValuesNeedTheirThread() {
        var thread = ThreadPlacement()
        #expect(thread.isOnLoop && thread.admits(Database.largeValueBytesMin - 1))
        #expect(!thread.admits(Database.largeValueBytesMin))
        thread.needsLongThread = true
        thread.enter(isOnLoop: false, mayBuildLong: false)
        #expect(!thread.isOnLoop && thread.needsLongThread && !thread.admits(Database.largeValueBytesMin))
        thread.enter(isOnLoop: false, mayBuildLong: true)
        #expect(!thread.needsLongThread && thread.admits(Database.largeValueBytesMin))
    }

    // MARK: Modes

    @Test("CLIENT REPLY SKIP suppresses the replies to itself and to the next command")
    func skippedReplies() {
        var modes = SessionModes()
        modes.replyMode = .skipsNext
        var silent: [Bool] = []
        for _ in 0..<3 {
            silent.append(modes.isSilent)
            modes.endCommand()
        }
        #expect(silent == [true, true, false])
        modes.replyMode = .off
        modes.endCommand()
        #expect(modes.isSilent)
    }

    @Test("a client is a subscriber until its last messages were delivered")
    func subscribersGetTheirLastMessages() {
        let record = ClientRecord(id: 1, address: "", descriptor: -1, now: 0) { _ in }
        var subscriptions = Subscriptions(Subscriber(id: 1, queue: PushQueue(PendingBytes())), record)
        #expect(subscriptions.isEmpty)
        let (one, two) = (Array("one".utf8), Array("two".utf8))
        let added = [subscriptions.insert(one, .channel), subscriptions.insert(one, .channel)]
        #expect(added == [true, false] && subscriptions.insert(two, .shardChannel))
        #expect(subscriptions.byteCount == 2 * Subscriptions.byteCount(3))
        #expect(subscriptions.shownCount(.pattern) == 1 && subscriptions.shownCount(.shardChannel) == 1)
        #expect(!subscriptions.remove(two, .channel) && subscriptions.remove(two, .shardChannel))
        subscriptions.endIfUnused()
        #expect(!subscriptions.isEmpty)
        #expect(subscriptions.remove(one, .channel) && !subscriptions.isEmpty)
        subscriptions.endIfUnused()
        #expect(subscriptions.isEmpty && subscriptions.byteCount == 0)
    }

    // MARK: Transactions

    private func enqueue(_ line: String, _ row: CommandMetadata, bytesMax: Int = 1000, in state: inout TransactionState)
        -> String
    {
        let words = Words(line)
        do throws(CommandError) {
            try state.enqueue(row, count: words.all.count, bytesMax: bytesMax) { words.all[$0] }
            return "QUEUED"
        } catch {
            return error.text
        }
    }

    private func text(_ body: () throws(CommandError) -> Void) -> String {
        do throws(CommandError) { try body() } catch { return error.text }
        return ""
    }

    @Test("EXEC runs the queued commands, in the database that the last SELECT chose")
    func queuedCommandsAreExecuted() {
        var state = TransactionState()
        #expect(text { () throws(CommandError) in try state.execute() } == "ERR EXEC without MULTI")
        state.queue = TransactionQueue()
        #expect(enqueue("SET k v", .set, in: &state) == "QUEUED")
        #expect(state.queue?.selection == nil)
        #expect(enqueue("SELECT shop", .select, in: &state) == "QUEUED")
        #expect(state.queue?.selection == "shop" && !state.isIdle)
        #expect(enqueue("CHANGES", .changes, in: &state) == "ERR Command not allowed inside a transaction")
        #expect(text { () throws(CommandError) in try state.execute() } == "")
        #expect(state.execution?.commands.map(\.row) == [.set, .select])
        #expect(state.execution?.commands[0].text(2) == "v")
        #expect(state.queue == nil && !state.isIdle)
        state.execution = nil
        #expect(state.isIdle)
    }

    @Test("a transaction may use a limited number of bytes")
    func longTransactionsAreRefused() {
        var state = TransactionState()
        state.queue = TransactionQueue()
        let refusal = "ERR the transaction is longer than 250 bytes (--max-transaction)"
        #expect(enqueue("SET k v", .set, bytesMax: 250, in: &state) == "QUEUED")
        #expect(enqueue("SET k v", .set, bytesMax: 250, in: &state) == "QUEUED")
        #expect(enqueue("SET k v", .set, bytesMax: 250, in: &state) == refusal)
        #expect(state.queue?.commands.count == 2 && state.queue?.byteCount ?? 0 <= 250)
    }

    @Test("EXEC discards a transaction with a refused command")
    func abortedTransactionsAreDiscarded() {
        var state = TransactionState()
        state.queue = TransactionQueue()
        state.queue?.isAborted = true
        let expected = "EXECABORT Transaction discarded because of previous errors."
        #expect(text { () throws(CommandError) in try state.execute() } == expected)
        #expect(state.isIdle)
    }

    // MARK: Rights

    private static func rules(_ text: String) throws -> AccessRules {
        var rules = AccessRules()
        rules.others = try AccessRule.parse(text, nil)
        return rules
    }

    @Test("changed rules apply after the rights were renewed, and refusals are in ACL LOG")
    func rightsAreRenewed() throws {
        let closed = Recorder<String>()
        let record = ClientRecord(
            id: 7, address: "", descriptor: -1, now: 0, credentials: PeerCredentials(user: 50_001, groups: [50_001])
        ) { closed.add($0) }
        let access = AccessControl(AccessRules(), log: .none, clock: { 0 })
        let rights = ConnectionRights(access, of: record, EngineTime(ManualTimeSource()))
        let words = Words("SET k v")
        let set = { (rights: ConnectionRights) in
            text { () throws(CommandError) in
                try rights.check(.set, count: 3, selected: "shop", .toplevel) { words.all[$0] }
            }
        }
        #expect(!rights.areOutdated && rights.level(in: "shop") == .write && set(rights) == "")
        _ = access.change(try Self.rules("user:50001=read@shop"))
        #expect(rights.areOutdated && set(rights) == "")
        rights.renew()
        #expect(!rights.areOutdated && rights.level(in: "shop") == .read && rights.level(in: "0") == nil)
        #expect(set(rights).hasPrefix("NOPERM User 50001 has no permissions to run the 'set' command"))
        #expect(access.remembered.map(\.object) == ["set"] && access.remembered[0].context == "toplevel")
        #expect(closed.isEmpty)
        record.channels.store(1, ordering: .relaxed)
        _ = access.change(try Self.rules("user:50001=read@other"))
        rights.renew()
        #expect(closed.count == 1, "a subscriber that has lost a right is disconnected")
        #expect(rights.mayNotify("other") && !rights.mayNotify("shop"))
    }

    // MARK: Waiting

    @Test("a command waits for its reply, and setting the reply wakes it exactly once")
    func awaitedRepliesWakeTheCommand() throws {
        let wakeUps = Recorder<Bool>()
        var waits = Waits()
        #expect(!waits.areOpen)
        let reply = Awaited<Result<RESPValue, CommandError>>(wakeUp: { wakeUps.add(true) })
        waits.reply = reply
        #expect(waits.areOpen && wakeUps.isEmpty)
        reply.set(.success(.integer(1)))
        #expect(!waits.areOpen && wakeUps.count == 1)
        #expect(try waits.reply?.value?.get() == .integer(1))
    }
}
