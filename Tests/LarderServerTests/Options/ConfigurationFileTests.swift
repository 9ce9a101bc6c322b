import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of the lines of a configuration file, and of the messages about invalid ones.
@Suite struct ConfigurationFileTests {
    /// Reads a configuration file with the given text.
    private func read(_ text: String) -> (line: DaemonCommandLine, problems: [String]) {
        var line = DaemonCommandLine()
        var file = ConfigurationFile(path: "f", bytes: Array(text.utf8))
        line.take(&file)
        return (line, file.problems)
    }

    @Test(
        "LevelDB's write buffer is a 16th of the memory limit, but not above a checkpoint's size",
        arguments: [
            ("memory=512M", 32 << 20), ("memory=8G", 32 << 20), ("memory=128M", 8 << 20), ("memory=0", 4 << 20),
            ("checkpoint=1M\nmemory=8G", 1 << 20), ("memory=8G\ncheckpoint=2K", 64 << 10),
        ])
    func writeBufferFollowsTheMemoryLimit(text: String, bytes: Int) {
        #expect(read(text).line.configuration.engine.writeBufferBytes == bytes)
    }

    @Test func configurationLinesMayHaveSpacesQuotesAndComments() {
        let (line, problems) = read(
            """
            # a comment
              memory = 64M   # half
            \tthreads\t3
            dir="/var/a \\"b\\" # \\\\c"  # with a comment
            socket = /run/a#b

            enable-debug
            policy=15m
            reply-timeout = 2h
            script-time-limit 7s\r
            """)
        #expect(problems == [])
        #expect(line.configuration.engine.memoryBytes == 64 << 20)
        #expect(line.configuration.threads == 3)
        #expect(line.configuration.directory == "/var/a \"b\" # \\c")
        #expect(line.configuration.socketPath == "/run/a#b")
        #expect(line.configuration.limits.allowsDebug)
        #expect(line.configuration.engine.defaultPolicy == .every(900))
        #expect(line.configuration.limits.outputStallMilliseconds == 7_200_000)
        #expect(line.configuration.limits.scriptMilliseconds == 7000)
    }

    @Test(arguments: [
        ("memori = 1", "f:1: there is no option 'memori'; did you mean memory?"),
        ("\n\nMEMORY = 1", "f:3: there is no option 'MEMORY': it is called memory"),
        ("maxmemory 64mb", "f:1: there is no option 'maxmemory': it is called memory"),
        ("unixsocket /x", "f:1: there is no option 'unixsocket': it is called socket"),
        ("--memory 1", "f:1: there is no option '--memory'; did you mean memory?"),
        (
            "max-watched-deadlines = 5",
            "f:1: max-watched-deadlines was removed: there is no limit any more, so delete it"
        ),
        ("purge", "f:1: purge is allowed only on the command line"),
        ("config = /x", "f:1: config is allowed only on the command line"),
        ("help", "f:1: help is allowed only on the command line"),
        ("memory", "f:1: memory needs a value"),
        ("memory =", "f:1: memory has no value after the '='"),
        ("memory = # none", "f:1: memory has no value after the '='"),
        ("= 5", "f:1: there is no name before the '='"),
        ("memory = 1 2", "f:1: memory 1 2: must be a number of bytes"),
        ("memory = -1", "f:1: memory -1: must be a number of bytes"),
        ("threads = 65", "f:1: threads 65: must be a number from 1 to 64"),
        ("reply-timeout = 1500ms", "f:1: reply-timeout 1500ms: must be a number of seconds, or one followed"),
        ("max-disk = 8M", "f:1: max-disk 8M: must be a number of bytes, or one followed by K"),
        (
            "policy = often",
            "f:1: policy often: must be highest, high, middle, low, lowest, never, or a number of seconds"
        ),
        ("enable-debug = perhaps", "f:1: enable-debug perhaps: must be yes or no"),
        ("dir = \"/x", "f:1: the closing quote is missing"),
        ("dir = \"/x\" y", "f:1: there is text after the closing quote"),
        ("dir = /x\u{0}", "f:1: the line contains a NUL"),
        ("threads = 1\nthreads = 2", "f:2: threads is already set in line 1"),
        ("password-file = /no/such", "f:1: password-file /no/such: there is no such file"),
    ])
    func errorsInAConfigurationFileHaveLineNumbers(_ text: String, _ problem: String) {
        let problems = read(text).problems
        #expect(problems.count == 1 && problems[0].hasPrefix(problem), "\(problems)")
    }

    @Test func allErrorsAreReportedInOrder() {
        let problems = read("bad 1\nmemory = x\ndir = \"\nthreads = 2\nworse 1").problems
        #expect(problems.map { $0.prefix(4) } == ["f:1:", "f:2:", "f:3:", "f:5:"])
    }

    @Test func bytesThatAreNotUTF8AreReported() {
        let file = ConfigurationFile(path: "f", bytes: [0xEF, 0xBB, 0xBF] + Array("threads 2\n".utf8) + [0xFF, 0xFE])
        #expect(file.problems == ["f:2: the line is not UTF-8"])
        #expect(file.lines == [ConfigurationFile.Line(number: 1, name: "threads", value: "2")])
    }

    /// Random bytes are either refused or accepted, without a crash, and the length of error texts is limited.
    @Test func randomBytesInAConfigurationFileCauseNoCrash() {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        let alphabet = Array("memory dir = threads\"\\#\n\r\t\0é=yes64M".utf8)
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0..<200, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? alphabet.randomElement(using: &random) ?? 0 : UInt8.random(in: 0...255, using: &random)
            }
            var line = DaemonCommandLine()
            var file = ConfigurationFile(path: "f", bytes: bytes)
            line.take(&file)
            #expect(file.problems.allSatisfy { $0.count < 600 })
        }
        #expect(read("memory = " + String(repeating: "9", count: 100_000)).problems[0].count < 600)
    }

    @Test("the sample file is valid and lists all options") func theSampleFileIsValidAndComplete() throws {
        let bytes = try Files.read(PackageRoot.path + "/Sources/packaging/larderd.conf")
        var line = DaemonCommandLine()
        var file = ConfigurationFile(path: "f", bytes: bytes)
        line.take(&file)
        #expect(file.problems == [] && file.lines == [])
        // Each option is listed, commented out with #.
        let text = String(decoding: bytes, as: UTF8.self)
        for option in DaemonOption.serving { #expect(text.contains("\n#\(option.key) = "), "\(option.key)") }
    }
}

/// Tests of the table of options that the command line, the file and CONFIG share.
@Suite struct DaemonOptionTableTests {
    @Test func everyServerOptionHasACONFIGSettingOfItsName() {
        for option in DaemonOption.serving {
            #expect(option.settings.contains { $0.name == option.key }, "\(option.name) has no setting of its name")
            // Reloading the file and CONFIG SET can change the same options, except for secrets.
            let own = option.settings.first { $0.name == option.key }
            if own?.isChangeable == true { #expect(option.isLive, "\(option.name)") }
        }
        #expect(Set(DaemonOption.all.map(\.usage)).count == DaemonOption.all.count)
    }

    /// Under its own name, an option accepts the syntax of the command line; under Redis' name, it accepts Redis'
    /// syntax.
    @Test func configAcceptsTheSyntaxOfTheCommandLine() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("CONFIG SET memory 64m") == Wire.ok)
        #expect(call("CONFIG GET memory maxmemory") == Wire.bulks("memory", "67108864", "maxmemory", "67108864"))
        #expect(call("CONFIG SET maxmemory 64m") == Wire.ok)
        #expect(call("CONFIG GET memory") == Wire.bulks("memory", "64000000"))
        #expect(
            call("CONFIG SET memory lots").hasPrefix(
                "-ERR CONFIG SET failed (possibly related to argument 'memory') - memory lots: must be a number"))
        #expect(call("CONFIG SET timeout 5m") == Wire.ok)
        #expect(call("CONFIG GET timeout") == Wire.bulks("timeout", "300"))
        #expect(call("CONFIG SET timeout 1500ms").contains("couldn't be parsed into an integer"))
        #expect(call("CONFIG SET slowlog-log-slower-than 10ms latency-monitor-threshold 1s") == Wire.ok)
        #expect(
            call("CONFIG GET slowlog-log-slower-than latency-monitor-threshold")
                == Wire.bulks("slowlog-log-slower-than", "10000", "latency-monitor-threshold", "1000"))
        #expect(call("CONFIG SET max-tracked-keys 7 max-subscriber-output 1gb") == Wire.ok)
        #expect(call("CONFIG GET tracking-table-max-keys") == Wire.bulks("tracking-table-max-keys", "7"))
        #expect(call("CONFIG GET max-subscriber-output") == Wire.bulks("max-subscriber-output", "1073741824"))
        #expect(call("CONFIG SET log-level debug") == Wire.ok)
        #expect(call("CONFIG GET log-level") == Wire.bulks("log-level", "debug"))
        #expect(call("CONFIG SET log-level loud").contains("must be one of debug, info, warning, error"))
        for (name, shown, level) in [
            ("verbose", "debug", "debug"), ("NOTICE", "notice", "info"), ("warning", "warning", "warning"),
        ] {
            #expect(call("CONFIG SET loglevel \(name)") == Wire.ok)
            #expect(call("CONFIG GET loglevel log-level") == Wire.bulks("loglevel", shown, "log-level", level))
        }
        #expect(call("CONFIG SET log-level error") == Wire.ok)
        #expect(call("CONFIG GET loglevel") == Wire.bulks("loglevel", "warning"))
        #expect(call("CONFIG SET threads 2").hasSuffix("can't set immutable config\r\n"))
        #expect(call("CONFIG SET threads 1") == Wire.ok)
        #expect(call("CONFIG SET dir /x").hasSuffix("can't set protected config\r\n"))
        #expect(call("CONFIG SET password-file /etc/passwd").hasSuffix("can't set protected config\r\n"))
    }

    @Test func timesMayHaveUnits() {
        for (text, microseconds) in [
            ("90", 90_000_000), ("90s", 90_000_000), ("5m", 300_000_000), ("5min", 300_000_000), ("2H", 7_200_000_000),
            ("1d", 86_400_000_000), ("250ms", 250_000), ("10us", 10), ("0", 0),
        ] as [(String, Int64)] {
            #expect(TimeSpan.microseconds(text, unit: .seconds) == microseconds, "\(text)")
        }
        for text in ["", "s", "-1", "+1", "1.5h", "1 h", "1w", "1mm", "99999999999999999999", "9999999999999d", "٣"] {
            #expect(TimeSpan.microseconds(text, unit: .seconds) == nil, "\(text)")
        }
        #expect(TimeSpan.parse("1500ms", unit: .seconds) == nil)
        #expect(TimeSpan.parse("2000ms", unit: .seconds) == 2)
    }
}
