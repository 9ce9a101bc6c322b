import LarderEngine
import LarderOriginClients
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of a database with an origin: scripts, values that are not strings, and entries from before the origin was
/// set.
@Suite struct OriginCommandsTests {
    private let origin = ScriptedOrigin()
    private let server: SocketlessServer
    private let client: TestClient

    init() throws {
        server = try SocketlessServer(policy: .high, origin: origin)
        client = server.connect()
        #expect(client("ORIGIN redis://there") == Wire.ok)
        _ = origin.takeCommands()
    }

    // MARK: Keys

    /// Regression test: the origin accepted such a key, and its entry made the commits of all clients fail.
    @Test(arguments: ["THROUGH", "BEHIND", "AROUND"])
    func keysThatAreTooLongAreRefused(_ writing: String) throws {
        #expect(client("ORIGIN redis://there \(writing)") == Wire.ok)
        _ = origin.takeCommands()
        let key = String(repeating: "k", count: Key.bytesMax + 1)
        let refusal = Wire.error("ERR key is \(Key.bytesMax + 1) bytes long, the longest is \(Key.bytesMax)")
        let commands = [
            ["SET", key, "v"], ["MSET", "a", "1", key, "2"], ["GET", key], ["DEL", key], ["INCR", key], ["LLEN", key],
            ["EVAL", "return 1", "1", key],
        ]
        for words in commands { #expect(client(words) == refusal, "\(words[0])") }
        #expect(client("MULTI") == Wire.ok)
        #expect(client(["SET", key, "v"]) == refusal)
        #expect(client("EXEC").hasPrefix("-EXECABORT "))
        #expect(origin.takeCommands() == [])
        let other = server.connect()
        #expect(other("SELECT 5") == Wire.ok && other("SET a 1") == Wire.ok)
        let database = try server.engine.database("5")
        Array(key.utf8).withUnsafeBytes { key in
            for unit in [EntryUnit(reading: key), EntryUnit(storing: key, under: key, .governed)] {
                var units = [unit]
                let done = units.withUnsafeMutableBufferPointer {
                    database.run($0, now: server.engine.now(), origin: WriteOrigin()) { _, _, _ in true }
                }
                #expect(done.count == 0)
            }
        }
        #expect(other("SET b 2") == Wire.ok && other("GET b") == Wire.bulk("2"))
    }

    // MARK: Scripts

    @Test(
        "EVALSHA of a script that the origin does not know sends it the script's text",
        arguments: [("EVALSHA", "eval"), ("EVALSHA_RO", "eval_ro"), ("evalsha", "eval")])
    func anUnknownScriptIsSentToTheOriginWithItsText(_ word: String, _ sent: String) throws {
        let script = "#!lua name=x\nreturn 7"
        #expect(client(["SCRIPT", "LOAD", script]).contains("Unknown lua shebang option"))
        for script in ["return 7", "#!lua flags=no-writes\nreturn 7"] {
            let reply = client(["SCRIPT", "LOAD", script])
            let digest = String(reply.split(separator: "\r\n")[1])
            #expect(client([word, digest, "1", "k", "v"]) == Wire.bulk(script))
            #expect(origin.takeCommands() == ["\(word) \(digest) 1 k v", "\(sent) \(script) 1 k v"])
        }
        let unknown = String(repeating: "a", count: 40)
        #expect(client([word, unknown, "0"]) == Wire.error("NOSCRIPT No matching script. Please use EVAL."))
        #expect(origin.takeCommands() == ["\(word) \(unknown) 0"])
    }

    @Test func evaluatedScriptsAreKnownToEVALSHA() throws {
        #expect(client(["EVAL", "return 8", "0"]) == Wire.bulk("return 8"))
        let sha = String(client(["SCRIPT", "LOAD", "return 8"]).split(separator: "\r\n")[1])
        #expect(client(["SCRIPT", "EXISTS", sha]) == "*1\r\n:1\r\n")
        // The origin decides whether a script is valid, even if the script does not compile here.
        #expect(client(["EVAL", "return (", "0"]) == Wire.bulk("return ("))
    }

    @Test func functionsMustBeLoadedAtTheOrigin() throws {
        #expect(client("FCALL f 0").contains("Function not found at the origin"))
    }

    @Test func aScriptsUndeclaredChangesAreReceivedBeforeItsReply() throws {
        origin.change("u", to: "old")
        #expect(client("GET u") == Wire.bulk("old"))
        origin.whenSettling { [origin] in origin.change("u", to: "new") }
        #expect(client(["EVAL", "return 1", "0"]) == Wire.bulk("return 1"))
        #expect(client("GET u") == Wire.bulk("new"))
    }

    // MARK: Other types

    /// Returns the reply to a command that waits for the origin twice: to read the key, and for the reply to the
    /// forwarded command.
    private func forwarded(_ line: String) -> String {
        let first = client(line)
        server.commit()
        return first + client.takeSendable()
    }

    @Test("keys of other types exist and can be described, but their values are not returned")
    func keysOfOtherTypesExistButAreNotReturned() throws {
        origin.setOtherType("list")
        origin.change("s", to: "v")
        #expect(client("EXISTS list s none list") == Wire.int(3))
        #expect(client("TOUCH list s") == Wire.int(2))
        #expect(client("MGET list s none") == "*3\r\n" + Wire.null + Wire.bulk("v") + Wire.null)
        for word in ["TYPE", "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "DUMP"] {
            #expect(forwarded("\(word) list") == Wire.bulk(word), "the origin's reply")
        }
        #expect(forwarded("OBJECT ENCODING list") == Wire.bulk("OBJECT"))
        for line in ["GET list", "STRLEN list", "FETCH list", "LCS list s"] {
            #expect(client(line).hasPrefix("-WRONGTYPE "), "\(line)")
        }
        #expect(client("TYPE s") == "+string\r\n")
    }

    @Test func keysThatChangedTypeAreNotServedAsStale() throws {
        #expect(client("ORIGIN redis://there STALE") == Wire.ok)
        _ = client("POLICY high GRACE 600")
        origin.change("k", to: "string")
        #expect(client("GET k") == Wire.bulk("string"))
        origin.lose()
        origin.setOtherType("k")
        #expect(client("GET k").hasPrefix("-WRONGTYPE "))
        #expect(client("FETCH k").hasPrefix("-WRONGTYPE "))
    }

    // MARK: Another origin

    /// Returns the reply to GET while the origin is not available.
    private func stale(_ client: TestClient, _ key: String) -> String {
        origin.lose()
        origin.fail(.closed)
        defer { origin.fail(nil) }
        return client("GET \(key)")
    }

    @Test func entriesOfThePreviousOriginAreNotServed() throws {
        _ = client("POLICY high GRACE 600")
        #expect(client("ORIGIN redis://there STALE") == Wire.ok)
        origin.change("a", to: "of there")
        _ = client("GET a")
        server.time.advance(milliseconds: 1_000)
        #expect(client("ORIGIN redis://there STALE AROUND") == Wire.ok)
        #expect(stale(client, "a") == Wire.bulk("of there"), "the same origin")
        #expect(client("ORIGIN redis://elsewhere STALE") == Wire.ok)
        #expect(stale(client, "a").hasPrefix("-ORIGIN "))
        origin.fail(.closed)
        #expect(client("FETCH a").hasPrefix("-ORIGIN "))
        origin.fail(nil)
        server.time.advance(milliseconds: 1_000)
        origin.change("b", to: "of elsewhere")
        _ = client("GET b")
        #expect(stale(client, "b") == Wire.bulk("of elsewhere"))
        server.engine.shutdown()
        let again = try SocketlessServer(reopening: server, origin: origin)
        again.time.advance(milliseconds: 2_000)
        let other = again.connect()
        #expect(stale(other, "a").hasPrefix("-ORIGIN "), "it is durable")
        #expect(stale(other, "b") == Wire.bulk("of elsewhere"))
        #expect(other("ORIGIN NONE") == Wire.ok)
        #expect(other("GET a") == Wire.bulk("of there"), "nothing was removed")
    }

    @Test func entriesWrittenWithoutAnOriginAreNotServedAsStale() throws {
        _ = client("POLICY high GRACE 600")
        #expect(client("ORIGIN NONE") == Wire.ok)
        #expect(client("SET a mine") == Wire.ok)
        #expect(client("ORIGIN redis://there STALE") == Wire.ok)
        #expect(stale(client, "a").hasPrefix("-ORIGIN "))
    }

    @Test func metaAndFetchAgreeOnStaleness() throws {
        _ = client("POLICY high GRACE 600")
        #expect(client("ORIGIN redis://there STALE") == Wire.ok)
        origin.change("a", to: "v")
        _ = client("GET a")
        #expect(client("META a").hasSuffix(Wire.bulk("state") + Wire.bulk("fresh")))
        origin.lose()
        origin.fail(.closed)
        #expect(client.fetch("a")?.state == "stale")
        #expect(client("META a").hasSuffix(Wire.bulk("state") + Wire.bulk("stale")))
    }

    // MARK: Reported counts

    @Test func originCountsOnlySuccessfulWrites() throws {
        #expect(client("SET a 1") == Wire.ok)
        #expect(client("INCR n") == Wire.int(1))
        #expect(client("DEL a") == Wire.int(1))
        origin.fail(.closed)
        for line in ["SET a 1", "INCR n", "DEL a", "EVAL return(1) 0"] { #expect(client(line).hasPrefix("-ORIGIN ")) }
        #expect(client("ORIGIN").contains(Wire.bulk("written") + Wire.int(3)))
    }

    @Test func theSlowLogHidesTheArgumentsOfORIGIN() throws {
        #expect(client("CONFIG SET slowlog-log-slower-than 0") == Wire.ok)
        #expect(client("ORIGIN redis://user:geheim@there PASSWORD geheim").hasPrefix("-ERR "))
        let log = client("SLOWLOG GET 10")
        #expect(log.contains("ORIGIN") && log.contains("(redacted)") && !log.contains("geheim"))
    }

    @Test(
        "options that only a larder has are refused in a database with an origin",
        arguments: [
            "GRACE 1", "TAGS 1 t", "KEEPTAGS", "CODEC json", "CODEC raw", "NX CODEC raw", "JITTER 1", "TOKEN 1",
        ])
    func optionsOfLardersAreRefused(_ options: String) {
        #expect(client("SET k v \(options)").contains("cannot be used in a database with an origin"))
        #expect(origin.takeCommands().isEmpty)
    }

    @Test func theConnectionsToOriginsReduceTheMaximumOfClients() {
        #expect(server.state.clientsPossible == .max - 5)
        #expect(client("ORIGIN NONE") == Wire.ok)
        #expect(server.state.clientsPossible == .max)
    }

    // MARK: Outbox databases

    @Test func anOutboxDatabaseCannotHaveAnOrigin() throws {
        _ = client("SELECT shop.outbox")
        #expect(client("ORIGIN redis://there").contains("is an outbox and cannot have an origin"))
        #expect(client("ORIGIN NONE") == Wire.ok)
    }

    @Test(arguments: ["ORIGIN NONE", "ORIGIN redis://there"]) func entriesAlreadyInAnOutboxDatabaseAreNotDelivered(
        _ previous: String
    ) throws {
        #expect(client(previous) == Wire.ok)
        let other = server.connect()
        _ = other("SELECT 0.outbox")
        try server.store("v", under: "mine", in: "0.outbox")
        let refused = client("ORIGIN redis://there BEHIND")
        #expect(
            refused.contains("'0.outbox' has entries that were not queued for this origin (1)")
                && refused.contains("DISCARD"))
        #expect(other("GET mine") == Wire.bulk("v"))
        #expect(client("ORIGIN bad:x BEHIND DISCARD").hasPrefix("-"))
        #expect(other("GET mine") == Wire.bulk("v"), "nothing was changed")
        #expect(client("ORIGIN redis://there BEHIND DISCARD") == Wire.ok)
        #expect(other("DBSIZE") == Wire.int(0))
        #expect(client("ORIGIN").contains(Wire.bulk("outbox") + Wire.int(0)))
    }

    @Test func pendingWritesAreNotDeliveredToAnotherOrigin() throws {
        #expect(client("ORIGIN redis://there BEHIND") == Wire.ok)
        #expect(client("SET k acknowledged") == Wire.ok)
        try server.engine.ledger.set(OriginFile.factName, to: nil)
        server.engine.shutdown()
        let again = try SocketlessServer(reopening: server, origin: origin)
        let other = again.connect()
        #expect(other("ORIGIN redis://elsewhere BEHIND").contains("restore that origin from a backup"))
        #expect(again.state.origins.deliver("0") == nil)
        #expect(origin.value("k") == nil)
    }

    private static let refusal = "-ORIGIN databases named NAME.outbox are outboxes"

    @Test("users store nothing in databases named NAME.outbox, without an origin too")
    func usersCannotWriteToOutboxDatabases() throws {
        let other = server.connect()
        #expect(other("SELECT x.outbox") == Wire.ok)
        let lines = [
            "SET k v", "MSET k v", "APPEND k v", "INCR k", "POLICY low", "EVAL return(redis.call('SET','k','v')) 1 k",
        ]
        let refusal = Self.refusal.dropFirst()
        for line in lines.dropLast() { #expect(other(line).contains(refusal), "\(line)") }
        let local = server.connect()
        _ = local("SELECT 1")
        #expect(local("SET k v") == Wire.ok)
        #expect(local("COPY k k DB x.outbox").contains(refusal))
        #expect(local("MOVE k x.outbox").contains(refusal))
        #expect(!server.engine.databases.contains { $0.name == "x.outbox" })
        #expect(local("EVAL return(redis.call('COPY','k','k','DB','x.outbox')) 1 k").contains(refusal))
        for line in lines {
            _ = other("MULTI")
            _ = other(line)
            #expect(other("EXEC").contains(refusal), "\(line) in MULTI")
        }
        #expect(other(lines[5]).contains(refusal))
        #expect(other("DBSIZE") == Wire.int(0))
        try server.store("v", under: "k", in: "x.outbox")
        #expect(other("GET k") == Wire.bulk("v"))
        #expect(other("DEL k") == Wire.int(1))
        #expect(other("PURGE").hasPrefix("*6"))
        #expect(other("SELECT 0") == Wire.ok)
        #expect(other("SET k v") == Wire.ok)
    }

    @Test func pendingWritesCannotExpire() throws {
        #expect(client("ORIGIN redis://there BEHIND") == Wire.ok)
        #expect(client("SET k v") == Wire.ok)
        let other = server.connect()
        _ = other("SELECT 0.outbox")
        for line in ["PEXPIRE k 1", "GETEX k PX 1", "SET k x", "RENAME k l", "COPY k l", "MOVE k 1", "SET n v"] {
            #expect(other(line).hasPrefix(Self.refusal), "\(line)")
            _ = other("MULTI")
            _ = other(line)
            #expect(other("EXEC").contains(Self.refusal), "\(line) in MULTI")
        }
        #expect(other("EVAL return(redis.call('PEXPIRE','k',1)) 1 k").contains(Self.refusal))
        #expect(client("COPY x k DB 0.outbox").hasPrefix("-"))
        #expect(other("EXISTS k") == Wire.int(1))
        server.time.advance(milliseconds: 10)
        server.state.origins.deliver("0")
        #expect(origin.value("k") == "v")
    }
}
