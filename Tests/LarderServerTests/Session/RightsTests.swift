import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of the commands that a connection's user is allowed to run.
@Suite struct RightsTests {
    private static let reader = PeerCredentials(user: 50_001, groups: [50_001])
    private static let writer = PeerCredentials(user: 50_002, groups: [50_002])
    private static let keeper = PeerCredentials(user: 50_003, groups: [50_003])
    private static let stranger = PeerCredentials(user: 50_004, groups: [50_004])
    private static let owner = PeerCredentials(user: 0, groups: [0])

    private static func rules(_ text: String) throws -> AccessRules {
        var rules = AccessRules()
        rules.others = try AccessRule.parse(text, nil)
        return rules
    }

    /// Returns a server with three users. The reader may read all databases. The writer may write `shop` and read 0.
    /// The keeper may write all databases.
    private func server() throws -> SocketlessServer {
        try SocketlessServer(
            rules: Self.rules(
                "user:50001=read group:50002=write@shop user:50002=read@0 user:50003=write user:50005=administer@shop"))
    }

    private func refusal(
        _ peer: PeerCredentials, _ name: String, in database: String? = nil, needs: String = "write"
    ) -> String {
        "-NOPERM User \(peer.user) has no permissions to run the '\(name)' command"
            + (database.map { " in database '\($0)'" } ?? "") + " (needs \(needs))\r\n"
    }

    @Test func higherLevelsIncludeLowerOnes() throws {
        let server = try server()
        let (reader, keeper, owner) = (
            server.connect(as: Self.reader), server.connect(as: Self.keeper), server.connect(as: Self.owner)
        )
        #expect(reader("SET k v") == refusal(Self.reader, "set"))
        #expect(keeper("SET k v") == Wire.ok)
        #expect(reader("GET k") == Wire.bulk("v"))
        for (name, line, needs) in [
            ("flushall", "FLUSHALL", "write in all databases"), ("fetch", "FETCH k", "write"),
            ("policy", "POLICY high", "write"), ("publish", "PUBLISH a b", "write"),
        ] {
            #expect(reader(line) == refusal(Self.reader, name, needs: needs))
            #expect(!keeper(line).hasPrefix("-"))
            #expect(!owner(line).hasPrefix("-"))
        }
        for (name, line) in [
            ("config|get", "CONFIG GET *"), ("limit", "LIMIT"), ("monitor", "MONITOR"),
            ("client|list", "CLIENT LIST"), ("client|kill", "CLIENT KILL ID 1"), ("slowlog|get", "SLOWLOG GET"),
            ("shutdown", "SHUTDOWN"), ("backup", "BACKUP /tmp/x"), ("check", "CHECK"), ("acl|list", "ACL LIST"),
            ("acl|log", "ACL LOG"), ("save", "SAVE"),
        ] {
            let needs = name == "limit" ? "administer" : "administer in all databases"
            #expect(reader(line) == refusal(Self.reader, name, needs: needs))
            #expect(keeper(line) == refusal(Self.keeper, name, needs: needs))
        }
        #expect(owner("CONFIG GET threads").contains("threads"))
    }

    /// Users that no rule names may run only commands that need no right. The same applies if the system does not
    /// report the user.
    @Test(arguments: [RightsTests.stranger, nil])
    func unlistedUsersMayOnlyIdentifyThemselves(_ peer: PeerCredentials?) throws {
        let call = try server().connect(as: peer)
        let name = peer.map { "\($0.user)" } ?? "unknown"
        for line in [
            "PING", "ECHO a", "HELLO 2", "CLIENT ID", "CLIENT GETNAME", "CLIENT SETNAME a", "CLIENT SETINFO lib-name a",
            "CLIENT INFO", "COMMAND COUNT", "MULTI", "DISCARD", "TIME", "UNSUBSCRIBE", "RESET", "ACL CAT",
        ] { #expect(!call(line).hasPrefix("-"), "\(line)") }
        #expect(call("ACL WHOAMI") == Wire.bulk(name))
        for line in [
            "GET k", "SET k v", "SELECT 1", "DATABASES", "KEYS *", "SCAN 0", "DBSIZE", "INFO", "EVAL return 1 0",
            "WATCH k",
            "SUBSCRIBE a", "PUBLISH a b", "SCRIPT LOAD 1", "FUNCTION LIST", "FUNCTION STATS", "PUBSUB CHANNELS",
            "SPUBLISH a b", "SCRIPT KILL", "ENTRIES", "SNAPSHOT OPEN", "POLICY",
        ] { #expect(call(line).hasPrefix("-NOPERM User \(name) has no permissions to run the '"), "\(line)") }
        #expect(call("QUIT") == Wire.ok)
    }

    @Test func rightsAreSeparatePerDatabase() throws {
        let server = try server()
        let (call, keeper) = (server.connect(as: Self.writer), server.connect(as: Self.keeper))
        #expect(keeper("SET k zero") == Wire.ok)
        #expect(call("GET k") == Wire.bulk("zero"))
        #expect(call("SET k v") == refusal(Self.writer, "set", in: "0"))
        #expect(call("SELECT 1") == refusal(Self.writer, "select", in: "1", needs: "read"))
        #expect(call("MOVE k shop") == refusal(Self.writer, "move", in: "0"))
        #expect(call("SELECT shop") == Wire.ok)
        #expect(call("SET k v") == Wire.ok)
        #expect(call("GET k") == Wire.bulk("v"))
        #expect(call("COPY k l DB shop") == Wire.int(1))
        #expect(call("COPY k l DB 0") == refusal(Self.writer, "copy", in: "0"))
        #expect(call("COPY k l REPLACE DB shop DB 1") == refusal(Self.writer, "copy", in: "1"))
        #expect(call("MOVE k 0") == refusal(Self.writer, "move", in: "0"))
        #expect(call("SWAPDB shop 0") == refusal(Self.writer, "swapdb", in: "0"))
        #expect(call("FLUSHALL") == refusal(Self.writer, "flushall", needs: "write in all databases"))
        #expect(call("FUNCTION FLUSH") == refusal(Self.writer, "function|flush", needs: "write in all databases"))
        #expect(call("PURGE").hasPrefix("*6\r\n"))
        #expect(call("RESET") == "+RESET\r\n")
        #expect(call("SET k v") == refusal(Self.writer, "set", in: "0"))
        #expect(keeper("GET k") == Wire.bulk("zero"))
        let administrator = server.connect(as: PeerCredentials(user: 50_005, groups: []))
        #expect(administrator("SELECT shop") == Wire.ok)
        #expect(administrator("LIMIT 100000000") == Wire.ok)
        #expect(administrator("CONFIG GET *").hasPrefix("-NOPERM"))
        let listed = administrator("DATABASES")
        #expect(listed.hasPrefix("*1\r\n") && listed.contains("\r\nshop\r\n"))
    }

    @Test func onlyAdministratorsMayUseOutboxDatabases() throws {
        let server = try server()
        let (keeper, owner) = (server.connect(as: Self.keeper), server.connect(as: Self.owner))
        for client in [keeper, owner] { #expect(client("SELECT shop.outbox") == Wire.ok) }
        try server.store("v", under: "k", in: "shop.outbox")
        #expect(keeper("GET k") == Wire.bulk("v"))
        for (line, name) in [("SET k w", "set"), ("DEL k", "del"), ("PURGE", "purge"), ("FLUSHDB", "flushdb")] {
            #expect(keeper(line).hasPrefix("-NOPERM User 50003 has no permissions to run the '\(name)'"), "\(line)")
        }
        #expect(keeper("FLUSHALL") == Wire.ok)
        #expect(owner("GET k") == Wire.bulk("v"))
    }

    @Test func infoCountsOnlyDatabasesThatTheUserMayRead() throws {
        let server = try server()
        let keeper = server.connect(as: Self.keeper)
        for database in ["0", "3", "shop", "secret"] {
            #expect(keeper("SELECT \(database)") == Wire.ok)
            #expect(keeper("SET k v") == Wire.ok)
        }
        let call = server.connect(as: Self.writer)
        let shown = call("INFO keyspace")
        #expect(shown.contains("db0:") && shown.contains("database_shop:"))
        #expect(!shown.contains("db3:") && !shown.contains("secret"))
    }

    @Test func infoHidesSizesOfDatabasesTheUserMayNotRead() throws {
        let server = try server()
        let keeper = server.connect(as: Self.keeper)
        for database in ["0", "shop", "secret"] {
            #expect(keeper("SELECT \(database)") == Wire.ok)
            #expect(keeper(["SET", "k", String(repeating: "v", count: 100_000)]) == Wire.ok)
            #expect(server.connect(as: Self.owner)("SAVE") == Wire.ok)
        }
        func bytes(_ peer: PeerCredentials) throws -> Int {
            let line = server.connect(as: peer)("INFO larder").split(separator: "\r\n")
                .first { $0.hasPrefix("disk_bytes:") }
            return try #require(line.flatMap { Int($0.dropFirst("disk_bytes:".count)) })
        }
        let readable = server.engine.databases.filter { ["0", "shop"].contains($0.name) }.reduce(0) {
            $0 + $1.diskBytes
        }
        #expect(try bytes(Self.writer) == readable)
        #expect(
            try bytes(PeerCredentials(user: 50_005, groups: []))
                == server.engine.databases.filter { $0.name == "shop" }[0].diskBytes)
        #expect(try bytes(Self.reader) > readable)
    }

    /// Tests each command with a fast path: alone, in a pipeline, and in a script with a fast path.
    @Test(arguments: ["set", "del", "incr", "pexpire", "fetch", "unlink", "decr", "incrby"])
    func noFastPathBypassesRights(_ name: String) throws {
        let server = try server()
        let call = server.connect(as: Self.writer)
        let words = ["set": "k v", "pexpire": "k 5", "incrby": "k 5"]
        let line = "\(name.uppercased()) \(words[name] ?? "k")"
        let expected = refusal(Self.writer, name, in: "0")
        for _ in 0..<3 { #expect(call(line) == expected) }
        // The right to write depends on the selected database, which may change in the middle of a pipeline.
        let block = "SELECT shop\r\nSET k 1\r\n\(line)\r\nGET k\r\nSELECT 0\r\n\(line)\r\n"
        call.feed(String(repeating: block, count: 5).utf8)
        server.commit()
        let answers = call.takeSendable()
        #expect(answers.components(separatedBy: expected).count == 6, "\(answers)")
        guard name != "fetch" else { return }
        let arguments = line.split(separator: " ").map { "'\($0)'" }.joined(separator: ",")
        for _ in 0..<3 {
            let answer = call(["EVAL", "return redis.call(\(arguments))", "1", "k"])
            #expect(answer.hasPrefix(expected.dropLast(2)), "\(answer)")
        }
        #expect(call(["EVAL", "return redis.pcall(\(arguments)).err", "1", "k"]).contains("NOPERM User"))
    }

    @Test(arguments: ["GET k", "MGET k k", "EXISTS k", "TTL k", "EVAL return 0"])
    func noReadFastPathBypassesRights(_ line: String) throws {
        let call = try server().connect(as: Self.stranger)
        let words = line == "EVAL return 0" ? ["EVAL", "return 1", "0"] : line.split(separator: " ").map(String.init)
        for _ in 0..<3 { #expect(call(words).hasPrefix("-NOPERM"), "\(line)") }
        call.feed(String(repeating: "\(line)\r\n", count: 20).utf8)
        #expect(call.takeSendable().components(separatedBy: "-NOPERM").count == 21)
    }

    /// Plain GETs of a user with read-only rights take the fast path; other commands between them do not.
    @Test func readersUseTheFastPathForGETOnly() throws {
        let server = try server()
        let (call, keeper) = (server.connect(as: Self.reader), server.connect(as: Self.keeper))
        #expect(keeper("SET k v") == Wire.ok)
        #expect(call.session.prechecks.allowsGets && !call.session.prechecks.allowsAll)
        let block = encodeRequest(["GET", "k"]) + encodeRequest(["SET", "k", "w"]) + encodeRequest(["INCR", "k"])
        for _ in 0..<3 { call.feed(block + block) }
        let expected = Wire.bulk("v") + refusal(Self.reader, "set") + refusal(Self.reader, "incr")
        #expect(call.takeSendable() == String(repeating: expected, count: 6))
        server.state.change(try Self.rules("user:50001=read@shop"))
        call.feed(encodeRequest(["GET", "k"]) + encodeRequest(["GET", "k"]))
        #expect(call.takeSendable() == String(repeating: refusal(Self.reader, "get", in: "0", needs: "read"), count: 2))
        #expect(!call.session.prechecks.allowsGets)
        #expect(call("SELECT shop") == Wire.ok)
        #expect(call.session.prechecks.allowsGets && !call.session.prechecks.allowsAll)
    }

    @Test func scriptsHaveTheRightsOfTheirUser() throws {
        let server = try server()
        let (call, keeper) = (server.connect(as: Self.writer), server.connect(as: Self.keeper))
        #expect(keeper("SET k v") == Wire.ok)
        #expect(call(["EVAL", "return redis.call('get','k')", "0"]) == Wire.bulk("v"))
        #expect(call(["EVAL", "redis.call('select','1') return redis.call('get','k')", "0"]).hasPrefix("-NOPERM User"))
        #expect(call(["EVAL", "redis.call('select','shop') redis.call('set','k','s') return 1", "0"]) == Wire.int(1))
        #expect(
            call(["EVAL", "redis.call('select','shop') redis.call('move','k','0')", "0"]).hasPrefix("-NOPERM User"))
        #expect(call("GET k") == Wire.bulk("v"))
        let library = "#!lua name=l\nredis.register_function('f', function(k) return redis.call('set', k[1], 'x') end)"
        #expect(keeper(["FUNCTION", "LOAD", library]) == Wire.bulk("l"))
        #expect(call("FCALL f 1 k").hasPrefix("-NOPERM User"))
        #expect(keeper("FCALL f 1 k") == Wire.ok)
    }

    @Test("queued commands are checked in the database that the transaction selects")
    func queuedCommandsNeedRightsInTheSelectedDatabase() throws {
        let server = try server()
        let call = server.connect(as: Self.writer)
        #expect(call("MULTI") == Wire.ok)
        #expect(call("SELECT shop") == "+QUEUED\r\n")
        #expect(call("SET k v") == "+QUEUED\r\n")
        #expect(call("SELECT 0") == "+QUEUED\r\n")
        #expect(call("GET k") == "+QUEUED\r\n")
        #expect(call("EXEC") == "*4\r\n+OK\r\n+OK\r\n+OK\r\n$-1\r\n")
        #expect(call("MULTI") == Wire.ok)
        #expect(call("SET k v") == refusal(Self.writer, "set", in: "0"))
        #expect(call("EXEC").hasPrefix("-EXECABORT"))
        #expect(call("MULTI") == Wire.ok)
        #expect(call("SELECT shop") == "+QUEUED\r\n")
        #expect(call("SET k w") == "+QUEUED\r\n")
        #expect(call("GET k") == "+QUEUED\r\n")
        server.state.change(try Self.rules("user:50002=read@shop"))
        #expect(
            call("EXEC").hasPrefix(
                "*3\r\n+OK\r\n-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
                    + "call. This command is no longer allowed for the following reason: User 50002 has no permissions to "
                    + "run the 'set' command (needs write)\r\n$1\r\nv\r\n"))
    }

    @Test func channelsOfDatabasesTheUserMayNotReadAreRefused() throws {
        let server = try server()
        func answer(_ line: String, _ peer: PeerCredentials) -> String { server.connect(as: peer)(line) }
        for line in [
            "SUBSCRIBE __keyspace@1__:k", "SUBSCRIBE news __keyevent@1__:set", "SUBSCRIBE __change@1__", "PSUBSCRIBE *",
            "PSUBSCRIBE __key*", "PSUBSCRIBE news __change@1__:*", "PUBLISH __change@0__ purged",
            "PUBLISH __keyspace@1__:k del",
        ] {
            #expect(
                answer(line, Self.writer).hasPrefix("-NOPERM User 50002 has no permissions to access the '"), "\(line)")
        }
        for line in [
            "SUBSCRIBE news", "SUBSCRIBE __keyspace@shop__:k __change@0__", "PSUBSCRIBE __keyevent@shop__:*",
            "PUBLISH n m",
            "PUBLISH __change@shop__ purged", "PSUBSCRIBE news.*", "SSUBSCRIBE __change@1__",
        ] { #expect(!answer(line, Self.writer).hasPrefix("-"), "\(line)") }
        #expect(!answer("PSUBSCRIBE *", Self.reader).hasPrefix("-"))
        #expect(
            answer("PUBSUB CHANNELS", Self.writer)
                == refusal(Self.writer, "pubsub|channels", needs: "read in all databases"))
        #expect(
            answer("CLIENT TRACKING ON BCAST", Self.writer)
                == refusal(Self.writer, "client|tracking", needs: "read in all databases"))
        #expect(answer("CLIENT TRACKING ON", Self.writer) == Wire.ok)
        #expect(answer("CLIENT TRACKING ON BCAST", Self.reader) == Wire.ok)
        let stats = server.connect(as: Self.owner)("INFO stats")
        #expect(stats.contains("acl_access_denied_channel:8\r\n") && stats.contains("acl_access_denied_cmd:2\r\n"))
    }

    /// Only a truncated form of a long word is stored and reported.
    @Test func longNamesInPermissionErrorsAreTruncated() throws {
        let server = try server()
        let call = server.connect(as: Self.writer)
        let long = String(repeating: "\u{301}x", count: 100_000)
        for words in [["SELECT", long], ["SUBSCRIBE", "__change@" + long], ["COPY", "k", "l", "DB", long]] {
            let answer = call(words)
            #expect(answer.hasPrefix("-NOPERM User 50002 ") && answer.utf8.count < 600, "\(answer.prefix(100))")
        }
        #expect(call(["SELECT", "a\r\nb"]).dropLast(2).allSatisfy { !$0.isNewline })
        for denial in server.state.access.remembered { #expect(denial.object.utf8.count < 600) }
        for index in 0..<500 { _ = call("SELECT n\(index)") }
        #expect(server.state.access.remembered.count == 128)
    }

    // MARK: New rules

    @Test func newRulesApplyToOpenConnections() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(as: Self.writer), server.connect(as: Self.reader))
        #expect(call("ACL WHOAMI") == Wire.bulk("default"))
        #expect(call("SET k v") == Wire.ok)
        server.state.change(try Self.rules("user:50001=read"))
        #expect(call("SET k w") == refusal(Self.writer, "set"))
        #expect(call("ACL WHOAMI") == Wire.bulk("50002"))
        #expect(call("CLIENT INFO").contains(" user=50002 "))
        #expect(other("GET k") == Wire.bulk("v"))
        server.state.change(try Self.rules("user:50002=write"))
        #expect(call("SET k w") == Wire.ok)
        #expect(other("GET k") == refusal(Self.reader, "get", needs: "read"))
        server.state.change(AccessRules())
        #expect(other("GET k") == Wire.bulk("w"))
        #expect(other("ACL WHOAMI") == Wire.bulk("default"))
    }

    private func isKilled(_ client: TestClient) -> Bool {
        client.session.record.isKilled.load(ordering: .relaxed)
    }

    @Test func subscribersThatLoseTheirRightsAreDisconnected() throws {
        let server = try SocketlessServer()
        let lines = ["SUBSCRIBE a", "PSUBSCRIBE *", "MONITOR", "CLIENT TRACKING ON BCAST", "CLIENT TRACKING ON"]
        let losers = (lines + ["QUERY LIVE KEYS"]).map { line in
            let client = server.connect(as: Self.reader)
            if line.hasPrefix("QUERY") { _ = client("HELLO 3") }
            #expect(!client(line).hasPrefix("-"))
            return client
        }
        let stays = server.connect(as: Self.owner)
        #expect(stays("PSUBSCRIBE *").contains("psubscribe"))
        let idle = server.connect(as: Self.reader)
        server.state.change(try Self.rules("user:50001=read"))
        for client in losers { #expect(isKilled(client)) }
        #expect(!isKilled(stays))
        #expect(!isKilled(idle))
        // A user that gets more rights is not disconnected.
        let listener = server.connect(as: Self.reader)
        #expect(listener("PSUBSCRIBE *").contains("psubscribe"))
        server.state.change(try Self.rules("user:50001=write"))
        #expect(listener("PING") != "")
        server.state.change(try Self.rules("user:50001=write@a"))
        #expect(isKilled(listener))
    }

    /// A redirection could fill the memory of another user's connection with messages that this user did not request.
    @Test func invalidationsCannotBeRedirectedToOtherUsers() throws {
        let server = try server()
        let (owner, other) = (server.connect(as: Self.owner), server.connect(as: Self.reader))
        let (reader, keeper) = (server.connect(as: Self.reader), server.connect(as: Self.keeper))
        let foreign = owner.session.id
        for client in [reader, keeper] {
            let answer = client("CLIENT TRACKING ON REDIRECT \(foreign)")
            #expect(answer.hasPrefix("-NOPERM invalidations can only be redirected to connections of the same user"))
        }
        #expect(reader("CLIENT TRACKING ON REDIRECT \(other.session.id)") == Wire.ok)
        #expect(owner("CLIENT TRACKING ON REDIRECT \(reader.session.id)") == Wire.ok)
    }

    /// A client has read a key in its own database, and is notified of this key. It is not notified of a key with the
    /// same name in a database that it may not read.
    @Test("a tracking client is not notified of keys in databases that it may not read")
    func trackingClientsAreNotNotifiedOfUnreadableKeys() throws {
        let server = try server()
        let (owner, writer) = (server.connect(as: Self.owner), server.connect(as: Self.writer))
        #expect(writer("HELLO 3").contains("proto"))
        #expect(writer("SELECT shop") == Wire.ok)
        #expect(writer("CLIENT TRACKING ON") == Wire.ok)
        _ = writer("GET k")
        #expect(owner("SELECT secret") == Wire.ok)
        #expect(owner("SET k v") == Wire.ok)
        #expect(!writer.takeSendable().contains("invalidate"))
        #expect(owner("SELECT shop") == Wire.ok)
        #expect(owner("SET k v") == Wire.ok)
        #expect(writer.takeSendable().contains("invalidate"))
    }

    // MARK: ACL

    @Test func aclCommandsShowTheAccessRules() throws {
        let server = try server()
        let (owner, call) = (server.connect(as: Self.owner), server.connect(as: Self.writer))
        let list = owner("ACL LIST")
        for line in [
            "user root on nopass ~* &* +@all", "user 50001 on nopass ~* &* -@all +@connection +@read",
            "group 50002 on nopass ~* &* -@all +@connection (shop: -@all +@connection +@read +@write)",
            "user 50005 on nopass ~* &* -@all +@connection (shop: +@all)",
        ] { #expect(list.contains("\r\n\(line)\r\n"), "\(line): \(list)") }
        #expect(owner("ACL USERS").contains("50003"))
        #expect(owner("ACL GETUSER 50003").contains("-@all +@connection +@read +@write"))
        #expect(owner("ACL GETUSER nosuchuser") == Wire.null)
        #expect(owner("ACL DRYRUN 50003 SET k v") == Wire.ok)
        #expect(
            owner("ACL DRYRUN 50001 SET k v")
                == Wire.bulk("User 50001 has no permissions to run the 'set' command (needs write)"))
        #expect(owner("ACL DRYRUN nosuchuser GET k") == Wire.error("ERR User 'nosuchuser' not found"))
        #expect(owner("ACL DRYRUN 50001 NOSUCH").hasPrefix("-ERR"))
        #expect(owner("ACL SETUSER bob on").contains("--allow-uid"))
        #expect(owner("ACL LOAD").contains("SIGHUP"))
        #expect(owner("ACL CAT").contains("dangerous") && owner("ACL CAT read").contains("\r\nget\r\n"))
        #expect(owner("ACL CAT nope") == Wire.error("ERR Unknown category 'nope'"))
        #expect(owner("ACL GENPASS 5").hasPrefix("$2\r\n") && owner("ACL GENPASS").hasPrefix("$64\r\n"))
        #expect(owner("ACL GENPASS 0").hasPrefix("-ERR ACL GENPASS"))
        for _ in 0..<3 { _ = call("SET k v") }
        #expect(call("SELECT 5").hasPrefix("-NOPERM"))
        let log = owner("ACL LOG")
        #expect(log.hasPrefix("*2\r\n*14\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$8\r\ndatabase\r\n"), "\(log)")
        #expect(log.contains("$5\r\ncount\r\n:3\r\n") && log.contains("user=50002"))
        #expect(
            owner("ACL LOG 1").hasPrefix("*1\r\n") && owner("ACL LOG RESET") == Wire.ok && owner("ACL LOG") == "*0\r\n")
        #expect(owner("INFO stats").contains("acl_access_denied_cmd:4\r\n"))
        #expect(owner("CONFIG RESETSTAT") == Wire.ok)
        #expect(owner("INFO stats").contains("acl_access_denied_cmd:0\r\n"))
    }

    @Test("without rules there is only the user `default`") func withoutRulesOnlyTheUserDefaultExists() throws {
        let call = try SocketlessServer().connect()
        #expect(call("ACL WHOAMI") == Wire.bulk("default"))
        #expect(call("ACL LIST") == Wire.bulks("user default on nopass ~* &* +@all"))
        #expect(call("ACL USERS") == Wire.bulks("default"))
        #expect(call("ACL GETUSER default").contains("+@all"))
        #expect(call("ACL DRYRUN default FLUSHALL") == Wire.ok)
        #expect(call("CLIENT INFO").contains(" user=default "))
        #expect(call("CONFIG SET rights user:0=read").contains("can't set"))
    }

    // MARK: The table

    /// The commands that every user may run. A new command without a required right appears here, and must be added to
    /// the list on purpose.
    @Test("commands that every user may run affect only the connection")
    func commandsWithoutARightAffectOnlyTheConnection() {
        let free = CommandMetadata.withSubcommands.filter {
            !$0.isHelp && $0.runsByItself && $0.requiredRight(count: max(1, abs($0.arity))) == nil
        }
        #expect(
            free.map(\.name) == [
                "multi", "exec", "discard", "unwatch", "unsubscribe", "punsubscribe", "sunsubscribe", "ping", "echo",
                "quit", "hello", "select", "auth", "reset", "client|id", "client|getname", "client|setname",
                "client|setinfo", "client|capa", "client|info", "client|reply", "client|no-touch", "client|tracking",
                "client|caching", "client|getredir", "client|trackinginfo", "readonly", "readwrite", "command",
                "command|count", "command|list", "command|info", "command|docs", "command|getkeys",
                "command|getkeysandflags", "time", "wait", "acl|whoami", "acl|cat", "acl|genpass",
            ])
    }

    @Test func commandsThatWriteNeedTheRightToWrite() {
        for row in CommandMetadata.withSubcommands where row.runsByItself && row.flags.contains(.write) {
            #expect(row.requiredRight(count: abs(row.arity))?.level == .write, "\(row.name)")
        }
        for row in CommandMetadata.withSubcommands
        where row.runsByItself && row.flags.contains(.admin) && row != .databases {
            #expect(row.requiredRight(count: abs(row.arity))?.level == .administer, "\(row.name)")
        }
    }
}
