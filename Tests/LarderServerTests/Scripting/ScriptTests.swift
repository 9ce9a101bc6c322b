import Foundation
import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Tests of scripts in sessions without sockets: the data that they read and write, and how they end.
@Suite struct ScriptTests {
    private static let unlock =
        "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

    private static func load(_ call: TestClient, _ script: String) -> String {
        let reply = call(["SCRIPT", "LOAD", script])
        return String(reply.split(separator: "\r\n").last ?? "")
    }

    // MARK: The fast path

    /// Scripts for the fast path, with their keys and arguments. Each runs once with the fast path and once without it.
    private static let quick: [(script: String, keys: [String], arguments: [String])] = [
        (unlock, ["a"], ["1"]), (unlock, ["a"], ["2"]), (unlock, ["nothing"], ["2"]),
        ("return redis.call('set',KEYS[1],ARGV[1])", ["n"], ["v"]),
        ("return redis.call('set',KEYS[1],ARGV[1],'NX','PX','5000')", ["n"], ["v"]),
        ("return redis.call('set',KEYS[1],ARGV[1],'nx','ex','5')", ["a"], ["v"]),
        ("return redis.call('set',KEYS[1],ARGV[1],'XX')", ["n"], ["v"]),
        ("return {redis.call('incr',KEYS[1]),redis.call('get',KEYS[1])}", ["a"], []),
        ("return {redis.call('incrby',KEYS[1],ARGV[1]),redis.call('pttl',KEYS[1])}", ["n"], ["-7"]),
        ("return {redis.call('expire',KEYS[1],'100'),redis.call('ttl',KEYS[1]),redis.call('pttl',KEYS[1])}", ["a"], []),
        ("return {redis.call('pexpire',KEYS[1],'1500'),redis.call('ttl',KEYS[1])}", ["a"], []),
        (
            "redis.call('expire',KEYS[1],'100') return {redis.call('decr',KEYS[1]),redis.call('pttl',KEYS[1])}", ["a"],
            []
        ),
        ("return {redis.call('del',KEYS[1]),redis.call('exists',KEYS[1]),redis.call('get',KEYS[1])}", ["a"], []),
        ("redis.call('del',KEYS[1]) return {redis.call('incr',KEYS[1]),redis.call('ttl',KEYS[1])}", ["a"], []),
        ("redis.call('set',KEYS[1],KEYS[2]) redis.call('set',KEYS[2],KEYS[1])", ["x", "y"], []),
        ("redis.call('set',KEYS[1],'1') error('after a write')", ["x"], []),
        ("redis.call('set',KEYS[1],'1') return redis.call('append',KEYS[1],'2')", ["x"], []),
        ("redis.call('set',KEYS[1],'1') return redis.call('set',ARGV[1],'2')", ["x"], ["undeclared"]),
        ("return redis.call('incr',KEYS[1])", ["text"], []), ("return redis.call('expire',KEYS[1],'-1')", ["a"], []),
        ("return redis.call('incrby',KEYS[1],'9223372036854775807')", ["a"], []),
        ("return {redis.call('get',KEYS[1]),redis.call('get',KEYS[2])}", ["a", "a"], []),
        ("return redis.call('exists',KEYS[1],KEYS[2])", ["a", "n"], []), ("return #KEYS", [], []),
        ("return redis.call('set',KEYS[1],string.rep('x',70000)).ok", ["a"], []),
    ]

    @Test func theFastPathRepliesLikeTheHandlers() throws {
        for (script, keys, arguments) in Self.quick {
            var results: [[String]] = []
            for isFast in [true, false] {
                let server = try SocketlessServer()
                let call = server.connect()
                call.session.prechecks.areUsed = isFast
                _ = call(["MSET", "a", "1", "text", "abc"])
                _ = call(["EXPIRE", "text", "100"])
                let digest = Self.load(call, script)
                // Load the entries into memory first, so that the fast path can use them.
                _ = call(["EXISTS"] + ["a", "n", "x", "y", "undeclared", "nothing"])
                let name = keys.count == 2 ? ["EVAL", script] : ["EVALSHA", digest]
                let reply = call(name + ["\(keys.count)"] + keys + arguments)
                var left = ["a", "n", "x", "y", "undeclared", "text"].map { call(["GET", $0]) + call(["PTTL", $0]) }
                left.append(reply)
                results.append(left)
            }
            #expect(results[0] == results[1], "\(script)")
        }
    }

    @Test func shortScriptsUseTheFastPath() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call("SET a 1")
        let digest = Self.load(call, Self.unlock)
        #expect(call(["EVALSHA", digest, "1", "a", "2"]) == Wire.int(0))
        #expect(call(["EVALSHA", digest, "1", "a", "1"]) == Wire.int(1))
        let repeats = server.state.scripts.counts.repeats.load(ordering: .relaxed)
        #expect(repeats == 0)
        #expect(call(["EVALSHA", digest, "1", "a", "1"]) == Wire.int(0))
        let script = try #require(digestOf(digest).flatMap { server.state.scripts.find($0) })
        let needsTransaction = script.needsTransaction.load(ordering: .relaxed)
        #expect(!needsTransaction)
    }

    private func digestOf(_ text: String) -> ScriptDigest? {
        Array(text.utf8).withUnsafeBytes { ScriptDigest(hexadecimal: $0) }
    }

    @Test func digestsMatchTheSHA1Standard() {
        // The examples of FIPS 180-4 with one block and two blocks.
        for (text, digest) in [
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"), ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
            ),
        ] {
            let found = Array(text.utf8).withUnsafeBytes { ScriptDigest(of: $0) }
            #expect(String(decoding: found.hexadecimal, as: UTF8.self) == digest)
            #expect(digestOf(digest.uppercased()) == found)
        }
        #expect(digestOf("a9993e364706816aba3e25717850c26c9cd0d89") == nil)
        #expect(digestOf("g9993e364706816aba3e25717850c26c9cd0d89d") == nil)
    }

    // MARK: Isolation and effects

    @Test("a script sees one instant and is one commit unit") func aScriptIsOneInstantAndOneUnit() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        #expect(
            call(["EVAL", "redis.call('set','a','1') redis.call('set','b','2') return redis.call('mget','a','b')", "0"])
                == Wire.bulks("1", "2"))
        #expect(other("MGET a b") == Wire.bulks("1", "2"))
        // As in Redis, changes made before an error are kept.
        let reply = call(["EVAL", "redis.call('set','a','3') redis.call('incr','c','x')", "0"])
        #expect(reply.hasPrefix("-ERR Wrong number of args calling Redis command from script"))
        #expect(other("GET a") == Wire.bulk("3"))
    }

    @Test func scriptsDoNotSeeExpiredEntries() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call("SET a 1 PX 1000 GRACE 100")
        server.time.advance(milliseconds: 1001)
        #expect(
            call(["EVAL", "return {redis.call('get',KEYS[1]) == false, redis.call('exists',KEYS[1])}", "1", "a"])
                == Wire.array(Wire.int(1), Wire.int(0)))
        #expect(call(["EVAL", "return redis.call('incr',KEYS[1])", "1", "a"]) == Wire.int(1))
    }

    /// A removal by a script ends the key's lease and its stale value, with and without the fast path.
    @Test(arguments: [true, false]) func removalsByScriptsEndLeasesAndStaleValues(isFast: Bool) throws {
        let server = try SocketlessServer()
        let call = server.connect()
        call.session.prechecks.areUsed = isFast
        let digest = Self.load(call, "return redis.call('del',KEYS[1])")
        _ = call("SET a 1 PX 1000 GRACE 100")
        server.time.advance(milliseconds: 1001)
        #expect(call(["EVALSHA", digest, "1", "a"]) == Wire.int(0))
        #expect(!call("FETCH a").contains("\r\n1\r\n"), "the stale value is removed")
        // A lease of a key without an entry ends too: its holder may have fetched the value before the removal.
        let token = String(call("FETCH b LEASE 10000").split(separator: "\r\n")[5])
        #expect(call("EXISTS b") == Wire.int(0))
        #expect(call(["EVALSHA", digest, "1", "b"]) == Wire.int(0))
        #expect(call("SET b old TOKEN \(token)") == Wire.null)
    }

    @Test func scriptsDoNotSeeEntriesWithPurgedTags() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call("SET a 1 TAGS 1 t")
        let digest = Self.load(call, "return redis.call('get',KEYS[1])")
        #expect(call(["EVALSHA", digest, "1", "a"]) == Wire.bulk("1"))
        _ = call("PURGE TAG t")
        #expect(call(["EVALSHA", digest, "1", "a"]) == Wire.null)
    }

    @Test func scriptsCanUseUndeclaredKeys() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let script = "local s = 0 for i = 1, 200 do s = s + redis.call('incr', 'k' .. i) end return s"
        #expect(call(["EVAL", script, "0"]) == Wire.int(200))
        #expect(call(["EVAL", script, "0"]) == Wire.int(400))
        // The script was not restarted for each undeclared key.
        let repeats = server.state.scripts.counts.repeats.load(ordering: .relaxed)
        #expect(repeats <= 16)
    }

    @Test func scriptsReadEntriesOnDisk() throws {
        let server = try SocketlessServer(configure: { $0.memoryBytes = 0 })
        let call = server.connect()
        _ = call("MSET a 1 b 2")
        server.commit()
        for database in server.engine.databases { _ = try database.checkpointer.flush(database) }
        #expect(
            call(["EVAL", "return {redis.call('get',KEYS[1]),redis.call('get','b')}", "1", "a"]) == Wire.bulks("1", "2")
        )
    }

    @Test func aScriptThatOnlyReadsCreatesNoDatabase() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call("SELECT books")
        #expect(call(["EVAL", "return redis.call('get','a')", "0"]) == Wire.null)
        #expect(!call("DATABASES").contains("books"))
        #expect(call(["EVAL", "return redis.call('set','a','1')", "0"]) == Wire.ok)
        #expect(call("DATABASES").contains("books"))
    }

    @Test func selectInAScriptDoesNotAffectTheConnection() throws {
        let call = try SocketlessServer().connect()
        #expect(call(["EVAL", "redis.call('select','books') return redis.call('set','a','1')", "0"]) == Wire.ok)
        #expect(call("GET a") == Wire.null)
        _ = call("SELECT books")
        #expect(call("GET a") == Wire.bulk("1"))
    }

    @Test func scriptsCannotUseLeases() throws {
        let call = try SocketlessServer().connect()
        for command in ["'fetch','a'", "'release','a','1'", "'snapshot','open'", "'policy','high'", "'purge'"] {
            let reply = call(["EVAL", "return redis.call(\(command))", "0"])
            #expect(reply.hasPrefix("-ERR This Redis command is not allowed from script"), "\(command)")
        }
    }

    @Test("scripts in a transaction run with its other commands")
    func scriptsInATransactionRunWithItsCommands() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        _ = call("MULTI")
        _ = call(["EVAL", "return redis.call('incr',KEYS[1])", "1", "a"])
        _ = call(["EVAL", "return redis.call('incr','undeclared')", "0"])
        #expect(other("GET a") == Wire.null)
        #expect(call("EXEC") == Wire.array(Wire.int(1), Wire.int(1)))
        #expect(other("MGET a undeclared") == Wire.bulks("1", "1"))
    }

    /// A command that overwrites a key does not need the key's value, so the transaction does not load it in advance.
    /// An earlier script of the transaction can read the value nevertheless.
    @Test(
        "a script in a transaction reads keys that later commands overwrite",
        arguments: ["EVAL", "EVAL_RO"], ["SET d x", "MSET d x e y"])
    func scriptsReadKeysThatLaterCommandsOverwrite(script: String, overwriting: String) throws {
        for memory in [0, 16 << 20] {
            let server = try SocketlessServer { $0.memoryBytes = memory }
            let call = server.connect()
            _ = call("SET d present")
            _ = call("MULTI")
            _ = call([script, "return redis.call('get',ARGV[1])", "0", "d"])
            _ = call(overwriting)
            #expect(call("EXEC") == Wire.array(Wire.bulk("present"), Wire.ok))
            #expect(call("GET d") == Wire.bulk("x"))
        }
    }

    @Test func countersInScriptsContinueBeforeLaterCommandsOverwriteThem() throws {
        let call = try SocketlessServer().connect()
        _ = call("SET n 41")
        _ = call("MULTI")
        _ = call(["EVAL", "return redis.call('set','out',redis.call('incr','n'))", "0"])
        _ = call("SET n 7")
        #expect(call("EXEC") == Wire.array(Wire.ok, Wire.ok))
        #expect(call("MGET n out") == Wire.bulks("7", "42"))
    }

    // MARK: Scripts that take long

    /// Lua code that runs so long that the script leaves the event loop.
    private static let busy = "local x = 0 for i = 1, 3000000 do x = x + i end "

    @Test func aLongScriptContinuesWithoutLocks() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let script = "local v = redis.call('incr',KEYS[1]) \(Self.busy) redis.call('set','other',v) return v"
        #expect(call(["EVAL", script, "1", "a"]) == Wire.int(1))
        #expect(call(["EVAL", script, "1", "a"]) == Wire.int(2))
        #expect(call("MGET a other") == Wire.bulks("2", "2"))
        let longRuns = server.state.scripts.counts.longRuns.load(ordering: .relaxed)
        #expect(longRuns == 2)
        #expect(server.state.scripts.runningCount == 0)
        // Changes made before an error are kept, as for a short script.
        let reply = call(["EVAL", "redis.call('set','a','x') \(Self.busy) error('late')", "0"])
        #expect(reply.hasPrefix("-ERR user_script:1: late script: "))
        #expect(call("GET a") == Wire.bulk("x"))
    }

    /// A command whose result differs on each call does not restart a script.
    @Test func readingTheTimeDoesNotRestartAScript() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call("SET a 0")
        let script = "redis.call('time') \(Self.busy) redis.call('publish','c','m') return redis.call('incr','a')"
        #expect(call(["EVAL", script, "0"]) == Wire.int(1))
        let repeats = server.state.scripts.counts.repeats.load(ordering: .relaxed)
        #expect(repeats <= 2)
    }

    @Test func scriptsCanCallKEYS() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call("MSET p:1 1 p:2 2 q 3")
        #expect(call(["EVAL", "return redis.call('del',unpack(redis.call('keys','p:*')))", "0"]) == Wire.int(2))
        #expect(call("MGET p:1 p:2 q") == Wire.array(Wire.null, Wire.null, Wire.bulk("3")))
    }

    @Test func aScriptThatRunsTooLongIsStopped() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 50
        let server = try SocketlessServer(limits: limits)
        let call = server.connect()
        for script in [
            "redis.call('set','a','1') while true do end", "while true do pcall(function() while true do end end) end",
            "while true do redis.call('incr','a') end",
            "xpcall(function() error('a') end, function(e) while true do end end)",
            "xpcall(function() while true do end end, function(e) while true do end end)",
            "coroutine.wrap(function() while true do end end)()",
            "local function f() return pcall(f) end while true do f() end",
        ] {
            let reply = call(["EVAL", script, "0"])
            #expect(
                reply.hasPrefix("-ERR the script was stopped after 50 ms (--script-time-limit)")
                    || reply.contains("--max-transaction"), "\(script): \(reply)")
        }
        #expect(call("GET a") == Wire.null, "none of the script's changes is applied")
        _ = call("MULTI")
        _ = call(["EVAL", "while true do end", "0"])
        _ = call("SET b 1")
        #expect(call("EXEC").contains("-ERR scripts in a transaction may use 100 ms of CPU time"))
        #expect(call("GET b") == Wire.bulk("1"))
    }

    // MARK: Bounds

    @Test func memoryOfAScriptIsLimited() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 600_000
        let server = try SocketlessServer(limits: limits)
        let call = server.connect()
        for script in [
            "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 10000) .. i end",
            "local s = 'x' while true do s = s .. s end",
        ] {
            let reply = call(["EVAL", script, "0"])
            #expect(reply.contains("--max-script-memory"), "\(reply)")
        }
        #expect(call(["EVAL", "return string.rep('x', 1e9)", "0"]).contains("resulting string too large"))
        #expect(call(["EVAL", "return 1", "0"]) == Wire.int(1))
    }

    /// Garbage of one script does not reduce the memory of the next script, and is not kept in an idle interpreter.
    @Test func memoryOfIdleInterpretersIsLimited() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        for _ in 0..<20 {
            let many = "local t = {} for i = 1, 30 do t[i] = string.rep(tostring(i), 5e5) end return #t"
            #expect(call(["EVAL", many, "0"]) == Wire.int(30))
            #expect(server.state.scripts.idleBytes <= server.state.limits.scriptMemoryMax / 4)
        }
        for number in 0..<50 {
            let long = "local t = {" + String(repeating: "\(number),", count: 20_000) + "} return #t"
            #expect(call(["EVAL", long, "0"]) == Wire.int(20_000))
            #expect(server.state.scripts.idleBytes <= server.state.limits.scriptMemoryMax / 4)
        }
    }

    @Test func theSizeAndDepthOfAScriptsReplyAreLimited() throws {
        var limits = Limits()
        limits.replyBytesMax = 100_000
        let call = try SocketlessServer(limits: limits).connect()
        let deep = "local t = {} local c = t for i = 1, 10000 do c[1] = {} c = c[1] end return t"
        #expect(call(["EVAL", deep, "0"]) == Wire.error("ERR the script's reply is nested deeper than 1000 levels"))
        let long = "local t = {} for i = 1, 1000 do t[i] = string.rep('x', 1000) end return t"
        #expect(call(["EVAL", long, "0"]).hasPrefix("-ERR the script's reply is longer than a reply may be"))
    }

    /// A reply that contains the same table many times is limited.
    @Test func repliesThatRepeatATableManyTimesAreLimited() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 50
        let call = try SocketlessServer(limits: limits).connect()
        let shared = "local a = {} for i = 1, 12 do a = {a,a,a,a,a,a,a,a,a,a} end return a"
        #expect(call(["EVAL", shared, "0"]).hasPrefix("-ERR the script"))
    }

    @Test func jsonEncodedByAScriptIsLimited() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 200
        let call = try SocketlessServer(limits: limits).connect()
        let long =
            "local s = string.rep('a',1000000) local a = {} for i = 1, 200 do a[i] = s end return #cjson.encode(a)"
        #expect(
            call(["EVAL", long, "0"]).hasPrefix("-ERR user_script:1: the JSON would be longer than 16777216 bytes"))
        let shared = "local a = {} for i = 1, 40 do a = {a,a} end return #cjson.encode(a)"
        #expect(call(["EVAL", shared, "0"]).hasPrefix("-ERR "))
        #expect(call(["EVAL", "return cjson.new().encode({1,'\u{1}\"'})", "0"]) == Wire.bulk("[1,\"\\u0001\\\"\"]"))
    }

    @Test func scriptsOfATransactionShareOneTimeLimit() throws {
        let call = try SocketlessServer().connect()
        _ = call("MULTI")
        for _ in 0..<40 { _ = call(["EVAL", "local x = 0 for i = 1, 1000000 do x = x + i end return 1", "0"]) }
        let reply = call("EXEC")
        #expect(reply.contains("-ERR scripts in a transaction may use 100 ms of CPU time"))
    }

    @Test func jitterIsAppliedOnceToAScriptsWrites() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call("POLICY 50 JITTER 50")
        let script = "redis.call('set','a','1') \(Self.busy) return redis.call('pttl','a')"
        let reply = call(["EVAL", script, "0"])
        #expect(call("PTTL a") == reply)
        let repeats = server.state.scripts.counts.repeats.load(ordering: .relaxed)
        #expect(repeats <= 3)
    }

    @Test func searchesInLuaStringsAreLimited() throws {
        let call = try SocketlessServer().connect()
        for search in [
            "(('a'):rep(30)..'b'):find(('a?'):rep(28)..('a'):rep(28))", "(('a'):rep(30000)):find(('.-'):rep(20)..'b')",
            "('x'):find(('a?'):rep(100000))",
            "(('a'):rep(10000000)):find(('a'):rep(5000000)..'b',1,true)",
        ] {
            let reply = call(["EVAL", "return \(search)", "0"])
            #expect(reply.contains("too long") || reply.contains("too complex"), "\(reply)")
        }
        #expect(call(["EVAL", "return (string.gsub('  a  ','^%s*(.-)%s*$','%1'))", "0"]) == Wire.bulk("a"))
    }

    /// A script does not see changes that another script made to the interpreter.
    @Test func scriptsCannotChangeTheInterpreterForOtherScripts() throws {
        let call = try SocketlessServer().connect()
        for (script, probe, expected) in [
            ("local _, t = pairs(string) t.rep = nil", "return string.rep('a',2)", Wire.bulk("aa")),
            ("pcall(function() getmetatable('').__index = nil end)", "return ('a'):rep(2)", Wire.bulk("aa")),
            ("pcall(function() rawset(redis, 'call', 1) end)", "return redis.call('echo','x')", Wire.bulk("x")),
            ("pcall(error, string)", "return tostring(rawget(string,'source'))", Wire.bulk("nil")),
            ("cjson.encode_max_depth(1)", "return cjson.encode({{{1}}})", Wire.bulk("[[[1]]]")),
            ("collectgarbage('stop')", "return tostring(KEYS[1])", Wire.bulk("nil")),
            (
                "table.insert(KEYS, 'x') ARGV.y = 1", "return {#KEYS, tostring(ARGV.y)}",
                Wire.array(Wire.int(0), Wire.bulk("nil"))
            ),
            ("coroutine.wrap(function() error('x') end)()", "return 1", Wire.int(1)),
        ] {
            _ = call(["EVAL", script, "0"])
            #expect(call(["EVAL", probe, "0"]) == expected, "\(script)")
        }
    }

    /// Functions of Lua's libraries in C, called with unusual numbers, cause no crash, no endless loop, and no memory
    /// use beyond the limit.
    @Test("unusual numbers cause no crash in the Lua library") func unusualNumbersDoNotCrashTheLuaLibrary() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 200
        let server = try SocketlessServer(limits: limits)
        let call = server.connect()
        for digits in ["-2147483648", "2^31", "-2^31", "2^53", "-1e300", "0/0", "1/0", "9", "-9", "0"] {
            let reply = call(["EVAL", "return #bit.tohex(255,\(digits))", "0"])
            #expect(reply == (digits == "0" || digits == "0/0" ? Wire.int(0) : Wire.int(8)), "\(digits): \(reply)")
        }
        #expect(call(["EVAL", "return bit.tohex(255,-2)", "0"]) == Wire.bulk("FF"))
        for script in [
            "table.insert({},-2^31,1)", "table.insert({},2^31,1)", "table.insert({1},-1e9,1)",
            "table.remove({1},-2^31)",
            "cjson.encode_sparse_array(true,0,0) return cjson.encode({[2^31-1]=1})",
            "cjson.encode_sparse_array(true,0,0) return cjson.encode({[2e7]=1})",
            "local c = cjson.new() c.encode_sparse_array(true,0,0) return c.encode({{[1e9]=1}})",
        ] {
            let reply = call(["EVAL", script, "0"])
            #expect(reply.hasPrefix("-ERR") || reply == Wire.null, "\(script): \(reply)")
        }
        let shift = "local t = {} for i = 1, 2e5 do t[i] = i end while true do table.insert(t,1,0) end"
        #expect(call(["EVAL", shift, "0"]).contains("--script-time-limit"))
        #expect(
            call(["EVAL", "cjson.encode_sparse_array(true,0,0) return cjson.encode({[5]=1})", "0"])
                == Wire.bulk("[null,null,null,null,1]"))
    }

    /// A script that holds the locks of its keys cannot run a command that takes the locks of all keys: it would wait
    /// for itself.
    @Test func scriptsCannotRunCommandsThatLockAllKeys() throws {
        let call = try SocketlessServer().connect()
        _ = call("SET k v")
        for command in ["'memory','doctor'", "'memory','stats'", "'info'", "'config','get','*'", "'databases'"] {
            let script = "redis.call('set',KEYS[1],'w') return redis.call(\(command))"
            #expect(call(["EVAL", script, "1", "k"]).hasPrefix("-ERR This Redis command is not allowed"), "\(command)")
        }
        _ = call("MULTI")
        _ = call("SET k x")
        _ = call("MEMORY DOCTOR")
        #expect(call("EXEC").contains("Entries use"))
    }

    @Test func scriptsInLuaBytecodeAreRefused() throws {
        let call = try SocketlessServer().connect()
        #expect(call(["EVAL", "\u{1B}Lua", "0"]).contains("bytecode is refused"))
        #expect(
            call(["EVAL", "return select(2, loadstring(string.char(27)..'Lua'))", "0"])
                == Wire.bulk("bytecode is refused"))
        let pieces =
            "local n = 0 return select(2, load(function() n = n + 1 if n == 1 then return string.char(27) elseif n == 2 then return 'Lua' end end))"
        #expect(call(["EVAL", pieces, "0"]) == Wire.bulk("bytecode is refused"))
        #expect(call(["EVAL", "return string.dump", "0"]) == Wire.null)
    }

    @Test func theMemoryOfCachedScriptsIsLimited() throws {
        var limits = Limits()
        limits.scriptsBytesMax = 40_000
        let server = try SocketlessServer(limits: limits)
        let call = server.connect()
        let digest = Self.load(call, "return 'kept'")
        for number in 0..<1000 { #expect(call(["EVAL", "return \(number)", "0"]) == Wire.int(number)) }
        #expect(server.state.scripts.kept.bytes <= 40_000)
        #expect(call(["EVALSHA", digest, "0"]) == Wire.bulk("kept"), "scripts of SCRIPT LOAD stay")
        var refusal = ""
        for number in 0..<1000 where refusal.isEmpty {
            let reply = call(["SCRIPT", "LOAD", "return 'loaded \(number)'"])
            if reply.hasPrefix("-") { refusal = reply }
        }
        #expect(call(["EVAL", "return 'no room'", "0"]) == Wire.bulk("no room"))
        #expect(refusal.hasPrefix("-ERR scripts are limited to 40000 bytes (--max-scripts)"))
        #expect(call("SCRIPT FLUSH") == Wire.ok)
        #expect(call(["EVALSHA", digest, "0"]) == Wire.error("NOSCRIPT No matching script. Please use EVAL."))
    }

    @Test("a script that does not compile is not cached") func scriptsThatDoNotCompileAreNotCached() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call(["EVAL", "return foo bar", "0"]).hasPrefix("-ERR Error compiling script (new function): "))
        #expect(server.state.scripts.kept.count == 0)
    }

    @Test("scripts, keys and arguments may contain any bytes") func scriptsMayContainAnyBytes() throws {
        let call = try SocketlessServer().connect()
        #expect(call(["EVAL", "return #'\u{FF}\u{0}'", "0"]) == Wire.int(3))
        #expect(call(["EVAL", "return KEYS[1] .. ARGV[1]", "1", "a\u{0}b", "\r\n"]) == Wire.bulk("a\u{0}b\r\n"))
    }

    @Test func aScriptIsCountedAndLoggedOnce() throws {
        let call = try SocketlessServer().connect()
        _ = call("SET a 0")
        _ = call("CONFIG SET slowlog-log-slower-than 0")
        for script in ["return redis.call('incr','a')", "\(Self.busy) return redis.call('incr','a')"] {
            _ = call("CONFIG RESETSTAT")
            _ = call("SLOWLOG RESET")
            _ = call(["EVAL", script, "0"])
            let statistics = call("INFO commandstats")
            #expect(statistics.contains("cmdstat_eval:calls=1,"), "\(statistics)")
            #expect(call("SLOWLOG GET").components(separatedBy: "EVAL").count == 2)
        }
    }

    /// The script starts again for each of its keys, because it declares none of them.
    @Test(arguments: [["EVAL"], ["MULTI", "EVAL", "EXEC"]])
    func theCommandsOfAScriptAreCountedOnce(_ commands: [String]) throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let script = "redis.call('get','a') redis.call('set','b',1) return redis.call('get','c')"
        for command in commands { _ = call(command == "EVAL" ? [command, script, "0"] : [command]) }
        #expect(server.state.scripts.counts.runs.read() > 1)
        let lines = call("INFO commandstats").split(separator: "\r\n")
        for (name, calls) in [("get", 2), ("set", 1), ("eval", 1)] {
            #expect(lines.contains { $0.hasPrefix("cmdstat_\(name):calls=\(calls),") }, "\(lines)")
        }
    }

    @Test func infoReportsScripts() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call(["EVAL", "return 1", "0"])
        let info = call("INFO")
        #expect(info.contains("number_of_cached_scripts:1\r\n"))
        #expect(info.contains("script_runs:1\r\n"))
    }
}
