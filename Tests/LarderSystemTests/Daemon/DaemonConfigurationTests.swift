import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of larderd with a configuration file, at startup and on reload.
@Suite struct DaemonConfigurationTests {
    private let place: TemporaryDirectory
    private let file: String

    init() throws {
        place = try TemporaryDirectory(inMemory: true)
        file = place.path + "/larderd.conf"
    }

    private func write(_ text: String, mode: mode_t = 0o644) throws {
        try Files.write(file, Array(text.utf8))
        chmod(file, mode)
    }

    private func check(_ arguments: [String] = []) throws -> (end: ProcessEnd, output: String, errors: String) {
        try DaemonProcess.run(["--config", file, "--check-config"] + arguments)
    }

    // MARK: At the start

    @Test func theCommandLineOverridesTheConfigurationFile() throws {
        try write("memory = 3mb\nthreads = 2\npolicy = 2h\nsocket = /nowhere/at/all\nmax-clients = 7")
        let daemon = try DaemonProcess(["--config", file, "--threads", "3"], in: place)
        let client = try daemon.connect()
        let answer = try client.call("CONFIG GET memory threads policy maxclients socket")
        for (name, value) in [("memory", "3145728"), ("threads", "3"), ("policy", "every:7200"), ("maxclients", "7")] {
            #expect(answer.contains("\r\n\(name)\r\n$\(value.utf8.count)\r\n\(value)\r\n"), "\(name): \(answer)")
        }
        #expect(answer.contains(daemon.socketPath))
        #expect(try client.call("INFO server").contains("\r\nconfig_file:\(file)\r\n"))
        #expect(
            try client.call("INFO server").contains(
                "\r\nexecutable:\(try #require(FileSystem.canonical(DaemonProcess.program())))\r\n"))
        #expect(try client.call("CONFIG REWRITE") == "-ERR Rewriting config file: larderd never writes it\r\n")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func errorsInTheConfigurationFilePreventTheStart() throws {
        try write("memori 1\nmemory = 64 apples\n\nthreads = 2\n")
        for arguments in [["--config", file], ["--config=" + file, "--check-config"], ["--config", file, "--purge"]] {
            let (end, output, errors) = try DaemonProcess.run(
                arguments + ["--dir", place.path + "/larder", "--socket", place.path + "/socket"])
            #expect(end == .exited(2) && output == "")
            #expect(
                errors == "larderd: \(file):1: there is no option 'memori'; did you mean memory?\n"
                    + "larderd: \(file):2: memory 64 apples: must be a number of bytes, or one followed by K, M, G or T, "
                    + "such as 64M, 64Mi or 64MiB, up to 1T\n")
        }
        #expect(!FileSystem.exists(place.path + "/larder"))
        let terminal = "evil\u{1b}[2J = 1"
        try write(terminal)
        #expect(try !check().errors.contains("\u{1b}"))
    }

    /// Errors of the command line are reported first, then errors of the file, regardless of their kinds.
    @Test func errorsOfCommandLineAndFileAreReportedTogether() throws {
        try write("memori 1\nthreads = 99\ndir = \"/x\npolicy = often")
        for action in [[], ["--check-config"]] {
            let (end, output, errors) = try DaemonProcess.run(
                ["--config", file, "--threads", "98", "--bad", "--max-disk", "8M", "--dir", place.path] + action)
            #expect(end == .exited(2) && output == "")
            let beginnings = [
                "--threads 98: must be a number", "unknown option --bad", "--max-disk 8M: must be a number of bytes",
                "\(file):1: there is no option 'memori'", "\(file):2: threads 99: must be a number",
                "\(file):3: the closing quote is missing", "\(file):4: policy often: must be highest",
            ]
            let lines = errors.split(separator: "\n")
            #expect(lines.count == beginnings.count + 1 && lines.last == "Try: larderd --help", "\(errors)")
            for (line, beginning) in zip(lines, beginnings) {
                #expect(line.hasPrefix("larderd: " + beginning), "\(line)")
            }
        }
        // If the file cannot be read, errors of the command line are still reported.
        let (_, _, errors) = try DaemonProcess.run(["--config", place.path + "/none", "--threads", "98"])
        #expect(
            errors == "larderd: --threads 98: must be a number from 1 to 64\n"
                + "larderd: \(place.path)/none: there is no such file (--config)\nTry: larderd --help\n")
    }

    @Test("--check-config checks a configuration file without starting") func checking() throws {
        try write("memory = 64M\n# nothing else\n")
        let (end, output, errors) = try check()
        #expect(end == .exited(0) && errors == "" && output == "\(file): no errors\n")
        #expect(try check(["--threads", "99"]).end == .exited(2))
        let (alone, _, why) = try DaemonProcess.run(["--check-config"])
        #expect(alone == .exited(2))
        #expect(why == "larderd: --check-config needs --config\nTry: larderd --help\n")
        let (both, _, _) = try DaemonProcess.run(["--check-config", "--purge", "--config", file])
        #expect(both == .exited(2))
    }

    /// A service unit names the file even if it may be missing.
    @Test("--config=-FILE allows a missing file") func aFileThatMayBeMissing() throws {
        let (end, output, _) = try DaemonProcess.run(["--config=-" + file, "--check-config"])
        #expect(end == .exited(0) && output == "\(file): no such file (it is optional)\n")
        let (missing, _, errors) = try DaemonProcess.run(["--config", file])
        #expect(missing == .exited(2) && errors == "larderd: \(file): there is no such file (--config)\n")
        let daemon = try DaemonProcess(["--config=-" + file], in: place)
        try write("memory = 5M")
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "SIGHUP: reloaded \(file), changed options: 1")
        #expect(try daemon.connect().call("CONFIG GET memory").contains("5242880"))
        try Files.remove(file)
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "SIGHUP: \(file) is missing, changed options: 1")
        #expect(try !daemon.connect().call("CONFIG GET memory").contains("5242880"))
    }

    // MARK: Invalid files

    @Test("pipes, directories and large files are refused as configuration files")
    func pipesDirectoriesAndLargeFilesAreRefused() throws {
        mkdir(place.path + "/directory", 0o755)
        mkfifo(place.path + "/pipe", 0o644)
        symlink(place.path + "/link", place.path + "/link")
        try Files.write(place.path + "/large", [])
        try #require(truncate(place.path + "/large", 1 << 30) == 0)
        try Files.write(place.path + "/filled", [UInt8](repeating: 0x20, count: (1 << 20) + 1))
        for (name, problem) in [
            ("directory", "\(place.path)/directory: it is not a regular file"),
            ("pipe", "\(place.path)/pipe: it is not a regular file"),
            ("large", "\(place.path)/large: it has 1073741824 bytes; at most 1048576 are read"),
            ("filled", "\(place.path)/filled: it has 1048577 bytes; at most 1048576 are read"),
            ("link", "open \(place.path)/link: Too many levels of symbolic links"),
        ] {
            let (end, _, errors) = try DaemonProcess.run(["--config", place.path + "/" + name, "--check-config"])
            #expect(end == .exited(2) && errors == "larderd: \(problem)\n", "\(errors)")
        }
        // The file's length is 0, although it has contents.
        let (end, _, errors) = try DaemonProcess.run(["--config", "/proc/kallsyms", "--check-config"])
        #expect(end == .exited(2), "\(errors.prefix(300))")
    }

    @Test func linesThatAreNotUTF8AreReported() throws {
        try Files.write(file, Array("memory = 1M\0\n".utf8) + [0x64, 0xFF, 0x0A])
        let (end, _, errors) = try check()
        #expect(end == .exited(2))
        #expect(errors == "larderd: \(file):1: the line contains a NUL\nlarderd: \(file):2: the line is not UTF-8\n")
        try Files.write(
            file, [UInt8](repeating: 0x0A, count: 10) + Array(repeating: Array("x\n".utf8), count: 1000).joined())
        #expect(try check().errors.split(separator: "\n").count == 21)
    }

    /// `--check-config` reports errors that a start would report, as far as they do not depend on files on the disk.
    @Test func checkConfigReportsALongSocketPath() throws {
        try write("socket = /\(String(repeating: "s", count: 200))")
        let (end, _, errors) = try check()
        #expect(end == .exited(2) && errors.contains("the socket's path is 201 bytes long"), "\(errors)")
    }

    /// Characters in a file must not change how a terminal shows an error.
    @Test func controlCharactersInErrorsAreEscaped() throws {
        try write("memo\u{202E}ry = 1M\nmem\u{9B}ory = 1M")
        let errors = try check().errors
        #expect(errors.contains(#"there is no option 'memo\xe2\x80\xaery'"#), "\(errors)")
        #expect(!errors.unicodeScalars.contains { $0 == "\u{202E}" || $0 == "\u{9B}" })
    }

    /// A configuration file that another user can write is refused, because it controls the daemon.
    @Test(.enabled(if: geteuid() == 0)) func aFileThatOtherUsersCanWriteIsRefused() throws {
        try write("memory = 64M", mode: 0o666)
        #expect(try check().errors == "larderd: \(file): all users can write to it: chmod go-w\n")
        for mode in [mode_t(0o664), 0o620] {
            try write("memory = 64M", mode: mode)
            let problem =
                "larderd: \(file): the group with gid 0 can write to it, and so control larderd: chmod g-w\n"
            #expect(try check().errors == problem)
            let (end, _, errors) = try DaemonProcess.run(["--config", file])
            #expect(end == .exited(2) && errors == problem)
        }
        try write("memory = 64M")
        chown(file, 65_534, 65_534)
        #expect(try check().errors.contains("it belongs to the user with uid 65534: its owner must be root"))
        #expect(try check().end == .exited(2))
    }

    // MARK: Read again

    @Test func sighupAppliesChangedOptions() throws {
        try write("memory = 5M\nthreads = 1\nmax-clients = 9\nlog-level = warning\ntimeout = 10m")
        let daemon = try DaemonProcess(["--config", file, "--log-level", "debug"], in: place)
        let client = try daemon.connect()
        func config(_ name: String) throws -> String {
            try client.call("CONFIG GET \(name)").split(separator: "\r\n").last.map(String.init) ?? ""
        }
        #expect(try config("log-level") == "debug", "the command line overrides the file")
        #expect(try client.call("CONFIG SET timeout 11") == "+OK\r\n")
        try write(
            "memory = 6M\nthreads = 2\nlog-level = error\ntimeout = 10m\nslowlog-max-len = 3\nmax-tracked-keys = 8")
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "SIGHUP: reloaded \(file), changed options: 4")
        let log = daemon.process.errors
        for text in [
            "info memory = 6M was applied", "warning threads = 2 takes effect when larderd is restarted",
            "info max-clients (its default) was applied", "info slowlog-max-len = 3 was applied",
            "info max-tracked-keys = 8 was applied",
        ] { #expect(log.contains(text), "\(text): \(log)") }
        #expect(try config("memory") == "6291456")
        #expect(try config("threads") == "1")
        #expect(try config("max-clients") == "10000")
        #expect(try config("slowlog-max-len") == "3")
        #expect(try config("timeout") == "11", "the file has no new value for it")
        #expect(try config("log-level") == "debug")
        // Changes that require a restart are reported at each reload.
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "threads = 2 takes effect when larderd is restarted")
        _ = try daemon.process.waitForErrorLine(containing: "changed options: 0")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func sighupWithAnInvalidFileChangesNothing() throws {
        try write("memory = 5M")
        let daemon = try DaemonProcess(["--config", file], in: place)
        let client = try daemon.connect()
        for text in ["memory = 6M\nmemori = 1", "memory = 6M\nmax-clients = many"] {
            try write(text)
            daemon.process.send(signal: SIGHUP)
            _ = try daemon.process.waitForErrorLine(containing: "error SIGHUP: the configuration was not changed")
            _ = try daemon.process.waitForErrorLine(containing: "error \(file):2: ")
            #expect(try client.call("CONFIG GET memory").contains("5242880"))
        }
        // A pipe at the file's path does not block the daemon.
        try Files.remove(file)
        mkfifo(file, 0o644)
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "error \(file): it is not a regular file")
        try Files.remove(file)
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "there is no such file (--config)")
        #expect(try client.call("CONFIG GET memory").contains("5242880"))
        #expect(try daemon.stop() == .exited(0))
    }

    /// Only the content of the password file changes; the configuration still has the same path.
    @Test func sighupAppliesANewPassword() throws {
        let secret = place.path + "/secret"
        try Files.write(secret, Array("melon-1\n".utf8))
        try write("password-file = \(secret)")
        let daemon = try DaemonProcess(["--config", file], in: place)
        let known = try daemon.connect()
        #expect(try known.call("AUTH melon-1") == "+OK\r\n")
        try Files.write(secret, Array("melon-2\n".utf8))
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "SIGHUP: reloaded \(file), changed options: 1")
        #expect(try known.call("PING") == "+PONG\r\n", "connected clients stay connected")
        let client = try daemon.connect()
        #expect(try client.call("AUTH melon-1").hasPrefix("-WRONGPASS"))
        #expect(try client.call("AUTH melon-2") == "+OK\r\n")
        // If the file cannot be read, no client gets access without the password.
        try Files.remove(secret)
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "there is no such file")
        #expect(try daemon.connect().call("PING").hasPrefix("-NOAUTH"))
        #expect(!daemon.process.errors.contains("melon"))
    }
}
