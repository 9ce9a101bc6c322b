import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of each control operation with the real daemon. Each of the operation's calls on the larder's files fails in
/// turn, once or permanently, or is the last call before SIGKILL. Afterwards the data is in the state before or after
/// the operation, as the reply says. No other data is lost, and no restart is needed.
///
/// `LARDER_CONTROL_POINTS=all` tries every call; a number tries that many of each kind, chosen by `LARDER_SEED`.
@Suite(.enabled(if: FaultLibrary.isAvailable)) struct ControlFaultTests {
    enum Operation: String, CaseIterable, Sendable {
        case purge, policy, create, createWithPolicy, swap, save
        /// The first tag purge creates the ledger.
        case purgeTag, purgeAnotherTag
        case flushFunctions

        var words: String {
            switch self {
            case .purge: "FLUSHDB"
            case .policy, .createWithPolicy: "POLICY high"
            case .create: "MSET a 1 b 2"
            case .swap: "SWAPDB books other"
            case .save: "SAVE"
            case .purgeTag, .purgeAnotherTag: "PURGE TAG t"
            case .flushFunctions: "FUNCTION FLUSH"
            }
        }

        /// The commands before the operation.
        var preparation: [String] { self == .purgeAnotherTag ? ["PURGE TAG other"] : [] }

        /// The database on which the operation runs.
        var database: String { self == .create || self == .createWithPolicy ? "new" : "books" }
    }

    enum Mode: CaseIterable, Sendable {
        case failOnce, failLasting, killBefore, killAfter

        var isKill: Bool { self == .killBefore || self == .killAfter }

        func rule(at number: UInt64) -> FaultControl.Rule {
            switch self {
            case .failOnce: .failing(.all, EIO, from: number, count: 1)
            case .failLasting: .failing(.changing, ENOSPC, from: number)
            case .killBefore: .killing(.all, at: number)
            case .killAfter: .killing(.all, at: number, after: true)
            }
        }
    }

    /// A client, and a daemon with entries in LevelDB and in the journal, after a purge.
    private final class Stage {
        let place: TemporaryDirectory
        let faults: FaultControl
        private(set) var daemon: DaemonProcess
        private(set) var client: SocketClient

        init(_ operation: Operation) throws {
            place = try TemporaryDirectory(inMemory: true)
            faults = try FaultControl(in: place)
            daemon = try DaemonProcess(in: place, faults: faults)
            client = try daemon.connect()
            for line in [
                "SELECT other", "SET kept x", "SELECT books", "SET gone y", "SAVE", "FLUSHDB",
                "SET a 1 TAGS 1 t", "SAVE", "SET b 2 TAGS 2 u t",
            ] + operation.preparation { try expectOK(line) }
            guard operation == .flushFunctions else { return }
            let library = "#!lua name=l\nredis.register_function('f', function() return 1 end)"
            _ = try client.call(["FUNCTION", "LOAD", library])
        }

        private func expectOK(_ line: String) throws {
            let reply = try client.call(line)
            guard reply == "+OK\r\n" else { throw ChildProcess.Failure(description: "\(line): \(reply)") }
        }

        /// Kills the daemon, unless a fault has killed it, and restarts it.
        func restart() throws {
            faults.disarm()
            client.close()
            daemon.kill()
            daemon = try DaemonProcess(in: place, faults: faults)
            client = try daemon.connect()
        }

        /// Returns the whole state of the larder, as replies.
        func state() throws -> [String] {
            var state: [String] = []
            for database in ["other", "new", "books"] {
                for line in ["SELECT \(database)", "GET a", "GET b", "GET gone", "GET kept", "POLICY"] {
                    state.append(try client.call(line))
                }
            }
            return state + [try client.call("FUNCTION LIST")]
        }

        /// Waits until writes are accepted in every database again: background work may need a moment to notice the
        /// recovery.
        func awaitWrites() throws -> Bool {
            for database in ["other", "books"] {
                _ = try client.call("SELECT \(database)")
                var attempts = 0
                while try client.call("SET written 1") != "+OK\r\n" {
                    attempts += 1
                    if attempts > 200_000 { return false }
                    sched_yield()
                }
            }
            return true
        }
    }

    /// The numbers of the calls at which a fault occurs.
    private func points(_ count: UInt64, _ standard: Int) -> [UInt64] {
        let all = Array(1...max(1, count))
        let wish = TestSetting.controlPoints.text
        if wish == "all" { return all }
        var random = SeededGenerator(seed: testSeed())
        return Array(all.shuffled(using: &random).prefix(wish.flatMap(Int.init) ?? standard))
    }

    @Test("a control operation that fails has either its whole effect or none", arguments: Operation.allCases)
    func failedControlOperationsHaveNoPartialEffect(_ operation: Operation) throws {
        let first = try Stage(operation)
        let before = try first.state()
        _ = try first.client.call("SELECT \(operation.database)")
        first.faults.count(.all)
        #expect(try first.client.call(operation.words) == "+OK\r\n")
        let count = first.faults.matched()
        first.faults.disarm()
        let after = try first.state()
        try first.restart()
        #expect(try first.state() == after, "after a crash")
        for mode in Mode.allCases {
            for number in points(count, 2) {
                let what = "\(operation), call \(number) of \(count), \(mode)"
                let stage = try Stage(operation)
                _ = try stage.client.call("SELECT \(operation.database)")
                stage.faults.arm(mode.rule(at: number))
                let reply = try? stage.client.call(operation.words)
                let hit = stage.faults.lastHit
                stage.faults.disarm()
                // The fault may have hit background work after the reply: the daemon was killed, or will be in a
                // moment.
                if mode.isKill { try stage.restart() }
                let state = try stage.state()
                switch reply {
                case "+OK\r\n": #expect(state == after, "\(what): \(hit)")
                case nil: #expect(state == before || state == after, "\(what): \(hit)")
                default: #expect(state == before, "\(what): \(hit), \(reply ?? "")")
                }
                #expect(try stage.awaitWrites(), "\(what): \(hit)")
                try stage.restart()
                // If the failed operation could not be undone either, the error may say that the operation may still
                // take effect.
                let mayCount = reply?.contains("may count") ?? false
                let restarted = try stage.state()
                #expect(
                    restarted == state || mayCount && restarted == after, "\(what): \(hit), after a crash")
                // Repeat the operation without a fault.
                _ = try stage.client.call("SELECT \(operation.database)")
                #expect(try stage.client.call(operation.words) == "+OK\r\n", "\(what): \(hit)")
            }
        }
    }

    /// A read that fails once must not make the daemon forget the contents of POINTER.
    @Test(
        "emptying a database keeps a policy that could not be read before", arguments: ["FLUSHDB", "FLUSHALL", "PURGE"])
    func emptyingKeepsThePolicy(_ words: String) throws {
        for count in 1...5 as ClosedRange<UInt64> {
            let place = try TemporaryDirectory(inMemory: true)
            let faults = try FaultControl(in: place)
            func start() throws -> (DaemonProcess, SocketClient) {
                let daemon = try DaemonProcess(["--policy", "high"], in: place, faults: faults)
                let client = try daemon.connect()
                #expect(try client.call("SELECT books") == "+OK\r\n")
                return (daemon, client)
            }
            let (first, writer) = try start()
            for line in ["SET a 1 TAGS 1 t", "POLICY lowest GRACE 500", "LIMIT 100000000", "PURGE TAG t"] {
                _ = try writer.call(line)
            }
            func expectRules(_ client: SocketClient, _ what: String) throws {
                let (policy, limit) = (try client.call("POLICY"), try client.call("LIMIT"))
                #expect(policy.contains("lowest") && policy.contains("500"), "\(what): \(policy)")
                #expect(limit.contains("100000000"), "\(what): \(limit)")
            }
            try expectRules(writer, "before")
            first.kill()
            faults.arm(.failing(.read, EIO, path: "books/POINTER", count: count))
            let (second, client) = try start()
            let reply = try client.call(words)
            #expect(faults.hits > 0, "nothing failed")
            faults.disarm()
            try expectRules(client, "\(count) reads fail, and the reply was \(reply)")
            second.kill()
            let (third, last) = try start()
            try expectRules(last, "\(count) reads fail, restarted")
            third.kill()
        }
    }
}
