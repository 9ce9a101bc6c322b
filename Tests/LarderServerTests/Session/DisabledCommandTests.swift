import LarderCommandCatalog
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests that commands that were disabled with `--disable-commands` are refused.
@Suite struct DisabledCommandTests {
    private func server(_ names: String) throws -> SocketlessServer {
        try SocketlessServer(disabled: try CommandSet(names))
    }

    private func refusal(_ name: String) -> String {
        "-NOPERM the '\(name)' command is disabled (--disable-commands)\r\n"
    }

    @Test func disabledCommandsReplyNOPERMAndDoNothing() throws {
        let call = try server("FLUSHALL, config|set debug").connect()
        #expect(call("SET k v") == Wire.ok)
        #expect(call("FLUSHALL") == refusal("flushall"))
        #expect(call("flushall async") == refusal("flushall"))
        #expect(call("CONFIG SET timeout 5") == refusal("config|set"))
        #expect(call("CONFIG GET timeout") == Wire.bulks("timeout", "0"))
        #expect(call("GET k") == Wire.bulk("v"))
        #expect(call("CONFIG GET disable-commands") == Wire.bulks("disable-commands", "flushall,config|set,debug"))
        #expect(call("INFO errorstats").contains("errorstat_NOPERM:count=3"))
    }

    @Test func disablingACommandDisablesItsSubcommands() throws {
        let call = try server("client").connect()
        for line in ["CLIENT LIST", "CLIENT ID", "CLIENT KILL ID 1"] {
            #expect(call(line).hasPrefix("-NOPERM the 'client|"), "\(line)")
        }
    }

    @Test func disabledCommandsAbortTransactions() throws {
        let call = try server("flushdb").connect()
        #expect(call("MULTI") == Wire.ok)
        #expect(call("SET k v") == "+QUEUED\r\n")
        #expect(call("FLUSHDB") == refusal("flushdb"))
        #expect(call("EXEC").hasPrefix("-EXECABORT"))
        #expect(call("GET k") == Wire.null)
    }

    /// Tests each command with a fast path: alone, in a pipeline, and in a script with a fast path.
    @Test(arguments: ["get", "set", "mget", "exists", "ping", "eval", "evalsha", "fetch", "del", "incr", "pexpire"])
    func noPathBypassesDisabledCommands(_ name: String) throws {
        let call = try server(name).connect()
        let lines = [
            "get": "GET k", "set": "SET k v", "mget": "MGET k k", "exists": "EXISTS k", "ping": "PING",
            "eval": "EVAL return 0", "evalsha": "EVALSHA 0123456789012345678901234567890123456789 0",
            "fetch": "FETCH k",
            "del": "DEL k", "incr": "INCR k", "pexpire": "PEXPIRE k 5",
        ]
        let line = try #require(lines[name])
        for _ in 0..<3 { #expect(call(line) == refusal(name)) }
        call.feed(String(repeating: "\(line)\r\n", count: 20).utf8)
        #expect(call.takeSendable() == String(repeating: refusal(name), count: 20))
        guard ["get", "set", "exists", "del", "incr", "pexpire"].contains(name) else { return }
        let arguments = line.split(separator: " ").map { "'\($0)'" }.joined(separator: ",")
        for _ in 0..<3 {
            let answer = call(["EVAL", "return redis.call(\(arguments))", "1", "k"])
            #expect(answer.hasPrefix("-NOPERM the '\(name)' command is disabled"), "\(answer)")
        }
        #expect(call(["EVAL", "return redis.pcall(\(arguments)).err", "0"]).contains("NOPERM"))
    }

    @Test func unknownCommandNamesAreErrors() throws {
        #expect(throws: UsageError.self) { try CommandSet("flushal") }
        do throws(UsageError) { _ = try CommandSet("get,flushal") } catch {
            #expect(error.description == "there is no command 'flushal'; did you mean flushall?")
        }
        for text in ["config|", "|set", "config|nosuch", "get|set", "\u{1b}[2J"] {
            #expect(throws: UsageError.self, "\(text)") { try CommandSet(text) }
        }
        #expect(try CommandSet("").isEmpty && CommandSet(" ,, ").isEmpty)
        #expect(try !CommandSet("flushall,config,shutdown,monitor,keys").needsChecks)
    }
}
