import TestSupport
import Testing

/// larderctl with the daemon itself.
@Suite struct LarderctlDaemonTests {
    @Test func theCommandLine() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        #expect(try larderctl("ping").text == "PONG\n")
        #expect(try larderctl("set", "k", "v", "--policy", "never").text == "OK\n")
        #expect(try larderctl("get", "k").text == "v")
        #expect(try larderctl("ttl", "k").text == "never\n")
        #expect(try larderctl("meta", "k").text.contains("\nrule       its own: it never expires\n"))
        #expect(try larderctl("keys", "--json").text == #"["k"]"# + "\n")
        #expect(try larderctl("policy").text == "lowest, 7 days\n")
        #expect(try larderctl("policy", "90").text == "OK\n")
        #expect(try larderctl("policy", "--json").text == #"{"policy":"every:90","interval":90000}"# + "\n")
        #expect(try larderctl("databases").text.hasPrefix("NAME  POLICY    ENTRIES"))
        #expect(try larderctl("stats", "server", "--json").text.hasPrefix(#"{"server":{"#))
        #expect(try larderctl("SET", "k", "w", "GET").text == "v\n")
        #expect(try larderctl("--json", "META", "none").exitCode == 1)
        #expect(try larderctl("SET", "k").exitCode == 4)
        #expect(try larderctl("--database", "Bad Name", "get", "k").exitCode == 4)
        #expect(try larderctl("del", "k", "none").text == "1\n")
        #expect(try larderctl("get", "k").exitCode == 1)
        #expect(try larderctl("purge", "--json").text.hasPrefix(#"{"entries":0,"bytes":"#))
        #expect(try larderctl("SHUTDOWN").exitCode == 0)
        #expect(try daemon.process.waitForExit() == .exited(0))
        #expect(try larderctl("ping").exitCode == 3)
    }

    @Test func everyCommandHasHelp() throws {
        let larderctl = Larderctl(socketPath: nil)
        let overview = try larderctl("help").text
        let commands = ["GET", "SET", "SCAN", "EXPIRE", "HELLO", "INFO", "META", "POLICY", "PURGE", "SNAPSHOT"]
        for command in commands {
            #expect(overview.contains(" \(command) ") || overview.contains(" \(command)\n"))
            let help = try larderctl("help", command)
            #expect(help.exitCode == 0)
            #expect(help.text.hasPrefix("usage: larderctl [OPTION…] \(command)"))
        }
    }
}
