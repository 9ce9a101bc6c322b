import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the candidates that shells offer while a command line of larderctl is typed.
@Suite struct CompletionTests {
    private let directory: TemporaryDirectory
    private let daemon: DaemonProcess
    private let larderctl: Larderctl

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
        daemon = try DaemonProcess(in: directory)
        larderctl = Larderctl(socketPath: daemon.socketPath)
        for key in ["page:1", "page:2", "user*1", "user*2"] { _ = try larderctl("set", key, "v") }
        _ = try larderctl("--database", "books", "set", "isbn", "v")
    }

    /// The candidates for the last word.
    private func offered(_ words: String...) throws -> [String] {
        let result = try larderctl.run(["completion", "--"] + words)
        #expect(result.exitCode == 0 && result.errors.isEmpty)
        return result.text.split(separator: "\n").map { String($0.prefix { $0 != "\t" }) }
    }

    @Test func completionOffersVerbsOptionsAndCommands() throws {
        #expect(try offered("ge") == ["get"])
        #expect(try offered("--json", "--timeout", "9", "ge") == ["get"])
        #expect(try offered("--data") == ["--database"])
        #expect(try offered("set", "k", "v", "--pol") == ["--policy"])
        #expect(try offered("set", "k", "v", "--policy", "high") == ["highest", "high"])
        #expect(try offered("STRL") == ["STRLEN"])
        #expect(try offered("CLIENT", "GETN") == ["GETNAME"])
        #expect(try offered("help", "pol") == ["policy"])
        #expect(try offered("get", "page:1", "").isEmpty)
        #expect(try offered("frobnicate", "").isEmpty)
        #expect(try Set(offered("")).isSuperset(of: ["get", "set", "backup", "completion", "help"]))
    }

    @Test func completionOffersDatabasesAndKeysOfTheDaemon() throws {
        #expect(try Set(offered("get", "page")) == ["page:1", "page:2"])
        #expect(try Set(offered("del", "page:1", "user*")) == ["user*1", "user*2"])
        #expect(try offered("--database", "books", "get", "") == ["isbn"])
        #expect(try offered("--database", "b") == ["books"])
        #expect(try offered("limit", "b") == ["books"])
        #expect(try offered("SELECT", "b") == ["books"])
        #expect(try Set(offered("MGET", "page:1", "page:")) == ["page:1", "page:2"])
        #expect(try offered("SET", "page:1", "page:").isEmpty, "it is the value")
        #expect(try offered("backup", "x") == [":files"])
        #expect(try offered("lock", "name", "--", "l") == [":files"])
    }

    @Test func completionOffersSettingsOfTheDaemon() throws {
        #expect(try Set(offered("CONFIG", "GET", "max-cl")) == ["max-clients"])
        #expect(try Set(offered("config", "get", "timeout", "slowlog-m")) == ["slowlog-max-len"])
        #expect(try Set(offered("CONFIG", "SET", "timeout", "5", "slowlog-m")) == ["slowlog-max-len"])
        #expect(try offered("CONFIG", "SET", "timeout", "t").isEmpty, "it is the value")
        #expect(try offered("CONFIG", "RESETSTAT", "t").isEmpty)
        let lines = try larderctl("completion", "--", "CONFIG", "GET", "timeou").text
        #expect(lines == "timeout\t0\n", "the candidate has its value as description")
    }

    @Test func completionWithoutADaemonPrintsNothing() throws {
        let lonely = Larderctl(socketPath: directory.path + "/nobody")
        let result = try lonely("completion", "--", "get", "p")
        #expect(result.exitCode == 0 && result.text.isEmpty && result.errors.isEmpty)
    }

    @Test func completionOmitsKeysWithControlCharacters() throws {
        _ = try larderctl.run([Array("SET".utf8), Array("odd\u{1B}[2J".utf8), [0x31]])
        _ = try larderctl.run([Array("SET".utf8), Array("odd".utf8) + [0xFF], [0x31]])
        #expect(try offered("get", "odd").isEmpty)
    }

    // MARK: The shells

    /// Runs a program in a shell that has larderctl in its path, and returns its output.
    private func shell(_ name: String, _ program: String) throws -> [String] {
        let tools = FileSystem.parent(try DaemonProcess.program("larderctl"))
        let environment = [
            "PATH=\(tools):/usr/bin:/bin", "HOME=\(directory.path)", "LARDER_SOCKET=\(daemon.socketPath)",
        ]
        let (end, output, errors) = try ChildProcess.run(
            name, (name == "zsh" ? ["-f"] : []) + ["-c", program], environment: environment)
        #expect(end == .exited(0), "\(errors)")
        return output.split(separator: "\n").map(String.init)
    }

    @Test func bashCompletesVerbsCommandsAndKeys() throws {
        func offered(_ line: String) throws -> [String] {
            try shell(
                "bash",
                """
                source <(larderctl completion bash)
                COMP_LINE='\(line)' COMP_POINT=${#COMP_LINE} COMP_WORDBREAKS=$' \\t\\n:='
                _larderctl; printf '%s\\n' "${COMPREPLY[@]}"
                """)
        }
        #expect(try offered("larderctl ge") == ["get"])
        #expect(try offered("larderctl --database b") == ["books"])
        // For bash, the text before the colon is not part of the completed word.
        #expect(try Set(offered("larderctl get page:")) == ["1", "2"])
        #expect(try Set(offered("larderctl get user")) == ["user\\*1", "user\\*2"])
    }

    @Test(arguments: [
        (["--mem"], ["--memory"]), (["--memory", ""], []), (["--memory", "="], []), (["--memory", "=", "6"], []),
        (["--log-level", "--"], []), (["--check-config", "--mem"], ["--memory"]), (["--purge", "=", ""], []),
        (["--purge", "--mem"], ["--memory"]), (["--dir", "/us"], ["/usr"]), (["--dir", "=", "/us"], ["/usr"]),
    ])
    func bashCompletesOptionsOfTheDaemon(words: [String], offered: [String]) throws {
        let found = try shell(
            "bash",
            """
            source '\(PackageRoot.path)/Sources/packaging/completions/larderd.bash'
            COMP_WORDS=(larderd \(words.map { "'\($0)'" }.joined(separator: " "))) COMP_CWORD=\(words.count)
            _larderd; printf '%s\\n' "${COMPREPLY[@]}"
            """)
        #expect(found == offered)
    }

    @Test func fishCompletesVerbsAndKeys() throws {
        func offered(_ line: String) throws -> [String] {
            try shell("fish", "larderctl completion fish | source; complete -C '\(line)'")
                .map { String($0.prefix { $0 != "\t" }) }
        }
        #expect(try offered("larderctl ge") == ["get"])
        #expect(try Set(offered("larderctl get page:")) == ["page:1", "page:2"])
    }

    @Test func zshCompletesKeys() throws {
        let words = try shell(
            "zsh",
            """
            compdef() { : }
            source <(larderctl completion zsh)
            _describe() { print -rl -- ${(P)2} }
            words=(larderctl get page:) CURRENT=3
            _larderctl
            """)
        #expect(Set(words.map { String($0.prefix(7)) }) == ["page\\:1", "page\\:2"])
    }

    @Test(arguments: [
        "larderd.bash", "larderctl.bash", "larderweb.bash", "_larderd", "_larderctl", "_larderweb", "larderd.fish",
        "larderctl.fish", "larderweb.fish",
    ])
    func completionFilesHaveNoSyntaxErrors(_ name: String) throws {
        let program = name.hasSuffix(".bash") ? "bash" : name.hasSuffix(".fish") ? "fish" : "zsh"
        let path = "\(PackageRoot.path)/Sources/packaging/completions/\(name)"
        let (end, _, errors) = try ChildProcess.run(program, ["-n", path])
        #expect(end == .exited(0) && errors.isEmpty, "\(errors)")
    }
}
