import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of how refusals, wrong passwords and log lines of scripts are reported, and of the limits on such reports.
@Suite struct RefusalRecordTests {
    private static func rules(_ text: String) throws -> AccessRules {
        var rules = AccessRules()
        rules.others = try AccessRule.parse(text, nil)
        return rules
    }

    /// Returns the lines that are logged while `body` runs.
    private static func logged(_ body: (Log) -> Void) throws -> [String] {
        let path = try TemporaryDirectory(inMemory: true)
        let file = open(path.path + "/log", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        body(Log(least: .info, descriptor: file))
        return try String(decoding: Files.read(path.path + "/log"), as: UTF8.self).split(separator: "\n").map(
            String.init)
    }

    @Test func wrongPasswordsAreCountedAndInACLLOG() throws {
        let server = try SocketlessServer(password: "right")
        let call = server.connect()
        for _ in 0..<3 { #expect(call("AUTH wrong").hasPrefix("-WRONGPASS")) }
        #expect(call("HELLO 3 AUTH somebody wrong").hasPrefix("-WRONGPASS"))
        #expect(call("AUTH right") == Wire.ok)
        #expect(call("INFO stats").contains("acl_access_denied_auth:4\r\n"))
        let log = call("ACL LOG")
        #expect(log.hasPrefix("*2\r\n"), "\(log)")
        for text in ["auth", "toplevel", "AUTH", "HELLO", "somebody", "default"] {
            #expect(log.contains(Wire.bulk(text)))
        }
        #expect(log.contains("count\r\n:3\r\n"))
        #expect(!log.contains("wrong"))
        #expect(call("CONFIG RESETSTAT") == Wire.ok)
        #expect(call("INFO stats").contains("acl_access_denied_auth:0\r\n"))
    }

    /// Wrong passwords are logged at most once per second, without the name or the password that was given.
    @Test func wrongPasswordsAreLogged() throws {
        let denial = AccessControl.Denial(
            reason: .auth, context: "toplevel", object: "AUTH", user: "hunter2", client: "", at: 0)
        let lines = try Self.logged { log in
            let time = ManualTimeSource()
            let access = AccessControl(AccessRules(), log: log) { time.monotonicMilliseconds() }
            for pause in [0, 1, 998, 1] as [Int64] {
                time.advance(milliseconds: pause)
                access.notePassword(denial, of: "client 4 (uid 5)")
            }
        }
        try #require(lines.count == 2)
        #expect(lines[0].hasSuffix("warning client 4 (uid 5) sent a wrong password"), "\(lines)")
        #expect(lines[1].hasSuffix("sent a wrong password; 2 more wrong passwords since the last line"), "\(lines)")
    }

    @Test func disabledCommandsAreCountedAsDenied() throws {
        let server = try SocketlessServer(
            disabled: try CommandSet("flushall"), rules: try Self.rules("user:50001=write"))
        let call = server.connect(as: PeerCredentials(user: 50_001, groups: []))
        let owner = server.connect(as: PeerCredentials(user: 0, groups: []))
        #expect(call("FLUSHALL").hasPrefix("-NOPERM the 'flushall' command is disabled"))
        #expect(call(["EVAL", "return redis.call('flushall')", "0"]).hasPrefix("-NOPERM the 'flushall'"))
        #expect(call("MULTI") == Wire.ok)
        #expect(call("FLUSHALL").hasPrefix("-NOPERM"))
        #expect(call("DISCARD") == Wire.ok)
        #expect(owner("INFO stats").contains("acl_access_denied_cmd:3\r\n"))
        let log = owner("ACL LOG")
        for text in ["command", "flushall", "toplevel", "lua", "multi", "50001"] {
            #expect(log.contains(Wire.bulk(text)), "\(text): \(log)")
        }
        #expect(owner("ACL DRYRUN 50001 FLUSHALL").contains("'flushall' command is disabled (--disable-commands)"))
        #expect(owner("ACL DRYRUN root FLUSHALL").contains("disabled"))
        #expect(owner("ACL DRYRUN 50001 SET k v") == Wire.ok)
    }

    @Test(
        "ACL DRYRUN checks the rights that CLIENT TRACKING needs",
        arguments: ["ON BCAST", "on prefix a bcast", "ON NOLOOP BCAST PREFIX a"])
    func aclDryRunChecksTheRightsForTracking(_ words: String) throws {
        let server = try SocketlessServer(rules: try Self.rules("user:50001=read@shop user:50002=read"))
        let owner = server.connect(as: PeerCredentials(user: 0, groups: []))
        let call = server.connect(as: PeerCredentials(user: 50_001, groups: []))
        #expect(call("CLIENT TRACKING \(words)").hasPrefix("-NOPERM"))
        #expect(owner("ACL DRYRUN 50001 CLIENT TRACKING \(words)").contains("no permissions"))
        #expect(owner("ACL DRYRUN 50002 CLIENT TRACKING \(words)") == Wire.ok)
        for other in ["ON", "OFF", "ON OPTIN"] {
            #expect(owner("ACL DRYRUN 50001 CLIENT TRACKING \(other)") == Wire.ok)
        }
    }

    /// Scripts of users with read-only rights can be evicted, so these users cannot fill the script cache permanently.
    @Test func scriptsOfReadOnlyUsersCanBeEvicted() throws {
        var limits = Limits()
        limits.scriptsBytesMax = 20_000
        let server = try SocketlessServer(limits: limits, rules: try Self.rules("user:50001=read@0 user:50002=write"))
        let (reader, writer) = (
            server.connect(as: PeerCredentials(user: 50_001, groups: [])),
            server.connect(as: PeerCredentials(user: 50_002, groups: []))
        )
        func text(_ number: Int) -> String { "return \(number) --" + String(repeating: "x", count: 4000) }
        for number in 0..<20 { #expect(reader(["SCRIPT", "LOAD", text(number)]).hasPrefix("$40\r\n")) }
        let last = reader(["SCRIPT", "LOAD", text(19)]).split(separator: "\r\n")[1]
        #expect(reader("EVALSHA \(last) 0") == Wire.int(19))
        let kept = writer(["SCRIPT", "LOAD", text(100)]).split(separator: "\r\n")[1]
        for number in 0..<20 { #expect(reader(["SCRIPT", "LOAD", text(number)]).hasPrefix("$40\r\n")) }
        #expect(writer("EVALSHA \(kept) 0") == Wire.int(100))
        // If a script cannot be stored, SCRIPT LOAD returns an error.
        for number in 101..<104 { #expect(writer(["SCRIPT", "LOAD", text(number)]).hasPrefix("$40\r\n")) }
        #expect(reader(["SCRIPT", "LOAD", text(0)]).contains("use SCRIPT FLUSH"))
        #expect(writer("SCRIPT FLUSH") == Wire.ok)
        #expect(reader(["SCRIPT", "LOAD", text(0)]).hasPrefix("$40\r\n"))
    }

    @Test func logLinesOfScriptsAreLimited() throws {
        let time = ManualTimeSource()
        let written = try Self.logged { log in
            let all = LimitedLines.ofScripts(log) { time.monotonicMilliseconds() }
            func run(_ count: Int, _ level: Int = 3) {
                var script = ScriptLog(all, of: "alice (client 7)")
                for _ in 0..<count { Array("line".utf8).withUnsafeBytes { script.add(level, $0) } }
            }
            // Lines that are suppressed do not count against the limit.
            run(90, 0)
            for _ in 0..<50 { run(10) }
            time.advance(milliseconds: 3000)
            run(10)
        }
        try #require(written.count == 103, "\(written.count)")
        #expect(written[0].hasSuffix("warning script of alice (client 7): line"), "\(written[0])")
        #expect(written[100].hasSuffix("line (400 lines of scripts were dropped before this)"), "\(written[100])")
    }

    /// SLOWLOG and MONITOR show no password, even if a command with a password is the argument of another command.
    @Test(arguments: [
        "COMMAND GETKEYS AUTH hunter2", "COMMAND GETKEYSANDFLAGS HELLO 3 AUTH me hunter2",
        "ACL DRYRUN root AUTH hunter2", "ACL DRYRUN root CONFIG SET requirepass hunter2",
        "COMMAND GETKEYS ACL DRYRUN root COMMAND GETKEYS AUTH hunter2",
        "COMMAND GETKEYS COMMAND GETKEYS COMMAND GETKEYS COMMAND GETKEYS COMMAND GETKEYS AUTH hunter2",
        // These commands lack a word.
        "HELLO AUTH me hunter2", "HELLO 3 SETNAME AUTH me hunter2", "CONFIG SET maxmemory requirepass hunter2",
        // Commands of Redis that larderd does not have.
        "ACL SETUSER me on >hunter2", "ACL DRYRUN root ACL SETUSER me on >hunter2",
    ])
    func passwordsInNestedCommandsAreHidden(_ line: String) throws {
        let server = try SocketlessServer()
        let (call, monitor) = (server.connect(), server.connect())
        #expect(monitor("MONITOR") == Wire.ok)
        #expect(call("CONFIG SET slowlog-log-slower-than 0") == Wire.ok)
        _ = call(line)
        let log = call("SLOWLOG GET")
        #expect(log.contains("(redacted)") && !log.contains("hunter2"), "\(log)")
        server.deliver()
        let shown = monitor.takeSendable()
        // MONITOR does not show administrative commands.
        #expect(shown.contains("(redacted)") || line.hasPrefix("ACL") || line.hasPrefix("CONFIG"), "\(shown)")
        #expect(!shown.contains("hunter2"), "\(shown)")
        _ = call("COMMAND GETKEYS GET hunter2")
        #expect(call("SLOWLOG GET").contains("hunter2"))
    }

    @Test("a warning names access rules that have no effect") func rulesWithoutEffectCauseAWarning() throws {
        var configuration = ServerConfiguration(directory: "/a", socketPath: "/tmp/socket")
        configuration.rules = try Self.rules("user:0=read@shop user:50001=read group:0=read")
        let warnings = Precautions.warnings(configuration).filter { $0.contains("no effect") }
        #expect(warnings.count == 1 && warnings[0].contains("user:0=read@shop"), "\(warnings)")
    }
}
