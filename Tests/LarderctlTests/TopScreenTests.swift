import LarderClient
import Testing

@testable import larderctl

/// Tests of the screen of `larderctl top`, as lines.
@Suite struct TopScreenTests {
    private static func info(_ calls: Int, name: String = "get") -> InfoText {
        let commands = (0..<40).map {
            "cmdstat_c\($0):calls=\($0),usec=\($0 * 10),usec_per_call=1.00,rejected_calls=0,failed_calls=0"
        }
        return InfoText(
            """
            # Server\r
            larder_version:0.1.0\r
            uptime_in_seconds:93784\r
            total_commands_processed:\(calls)\r
            keyspace_hits:\(calls)\r
            keyspace_misses:0\r
            connected_clients:3\r
            memory_tier_bytes:1572864\r
            maxmemory:67108864\r
            disk_bytes:104857600\r
            disk_limit:1073741824\r
            cmdstat_\(name):calls=\(calls),usec=\(calls * 4),usec_per_call=4.00,rejected_calls=0,failed_calls=1\r
            latency_percentiles_usec_\(name):p50=1.000,p99=8.000,p99.9=2048.000\r
            \(commands.joined(separator: "\r\n"))\r

            """)
    }

    private static func screen(name: String = "get") -> TopScreen {
        var screen = TopScreen(socketPath: "/run/larder/larder.sock", info: info(2000, name: name))
        screen.rates = InfoRates(from: info(1000, name: name), to: info(2000, name: name), milliseconds: 500)
        return screen
    }

    /// Returns the line without escape sequences for colors and styles.
    private static func plain(_ line: String) -> String { line.replacing(/\u{1B}\[[0-9]*m/, with: "") }

    @Test(arguments: [(80, 24), (40, 10), (200, 60), (20, 5), (3, 2), (1, 1)])
    func topFitsTheTerminal(_ width: Int, _ height: Int) {
        for table in [TopScreen.Table.commands, .databases] {
            var screen = Self.screen()
            screen.table = table
            let lines = screen.lines(width: width, height: height).map(Self.plain)
            #expect(lines.count == height)
            #expect(lines.allSatisfy { $0.count <= width }, "\(lines)")
        }
    }

    @Test func topShowsRatesPerSecond() {
        let lines = Self.screen().lines(width: 80, height: 24).map(Self.plain)
        #expect(lines[0] == "larder 0.1.0 at /run/larder/larder.sock  up 1d 02:03:04")
        #expect(lines[1] == "operations 2.0k/s  hits 100.0 % (100.0 % since the start)  clients 3")
        #expect(lines[2] == "memory 1.5 MiB of 64 MiB  disk 100 MiB of 1 GiB  journal 0 B")
        #expect(lines[5].hasPrefix("COMMAND") && lines[5].hasSuffix("FAILED"))
        #expect(lines[6].hasPrefix("get ") && lines[6].contains(" 2.0k  0.8 %     4 us  1 us  8 us  2.0 ms"))
        #expect(lines[23].hasPrefix("q quit "))
    }

    @Test func topSortsCommandsByTheChosenColumn() {
        var screen = Self.screen()
        #expect(screen.commands.first?.name == "get")
        screen.order = .name
        #expect(screen.commands.first?.name == "c1")
        screen.order = .slowest
        #expect(screen.commands.first?.name == "get")
        #expect(Set(TopScreen.Order.allCases.map(\.key)).count == TopScreen.Order.allCases.count)
    }

    @Test func topEscapesControlCharacters() {
        var screen = Self.screen(name: "e\u{1B}[2Jvil")
        screen.problem = nil
        let text = screen.lines(width: 80, height: 24).map(Self.plain).joined()
        #expect(!text.contains("\u{1B}") && text.contains("e\\x1b[2Jvil"))
    }

    @Test func topReportsALostDaemon() {
        var screen = Self.screen()
        screen.rates = nil
        screen.problem = "no daemon answers"
        #expect(screen.lines(width: 80, height: 24).contains("no daemon answers"))
    }
}

/// Tests of the short forms of numbers that larderctl shows.
@Suite struct WatchingTests {
    @Test func figuresAreFormattedInAShortForm() {
        let counts: [(Double, String)] = [
            (0, "0"), (7, "7"), (7.25, "7.3"), (812, "812"), (12_400, "12.4k"), (999_499, "999k"), (3_140_000, "3.1M"),
            (1e40, "?"), (-1, "?"), (.nan, "?"),
        ]
        for (value, text) in counts { #expect(NumberText.count(value) == text) }
        let times: [(Double, String)] = [
            (0, "0 us"), (1.5, "1.5 us"), (812, "812 us"), (1500, "1.5 ms"), (250_000, "250 ms"), (2_000_000, "2.0 s"),
            (120_000_000, "2.0 min"), (1e300, "?"),
        ]
        for (value, text) in times { #expect(NumberText.microseconds(value) == text) }
        #expect(NumberText.percent(0.935) == "93.5 %" && NumberText.percent(nil) == "-")
        #expect(NumberText.duration(3661) == "01:01:01" && NumberText.duration(-5) == "00:00:00")
        #expect(NumberText.whole(1e300) == Int(1e18) && NumberText.whole(.nan) == 0)
    }

    @Test func countersThatWereResetHaveNoRate() {
        let rates = InfoRates(
            from: InfoText("a:9223372036854775807\r\nrun_id:1"), to: InfoText("a:5\r\nrun_id:2"), milliseconds: 0)
        #expect(rates.perSecond("a") == 0 && rates.isRestarted)
        let wide = InfoRates(
            from: InfoText("a:-9223372036854775808"), to: InfoText("a:9223372036854775807"), milliseconds: 1)
        #expect(
            WatchTable.line(wide).count == WatchTable.heading.count && wide.difference("a") == 2 * InfoText.integerMax
        )
        #expect(WatchTable.heading.count <= 80)
    }

    @Test func administrativeCommandsAreNotListedAsSlow() {
        func isOfProgram(_ words: String...) -> Bool {
            SlowCommand(seconds: 0, microseconds: 0, words: words.map { Array($0.utf8) }, clientName: "").isOfProgram
        }
        #expect(isOfProgram("GET", "a") && isOfProgram("KEYS", "*") && isOfProgram("of a newer daemon"))
        #expect(!isOfProgram("INFO", "all") && !isOfProgram("BACKUP", "/x") && !isOfProgram("CONFIG", "GET", "*"))
    }

    @Test func linesOfMONITORAreParsed() throws {
        let line = try #require(
            MonitorLine("1700000000.123456 [0 /run/l s:0] \"SET\" \"a \\\"b\\\\\" \"\\x00\\n\\xff\""))
        #expect(line.time == "1700000000.123456" && line.database == "0" && line.client == "/run/l s:0")
        #expect(line.words == [Array("SET".utf8), Array("a \"b\\".utf8), [0, 10, 255]])
        for text in ["", "OK", "1 [0 x", "1 [0 x] \"a", "1 [0 x] \"\\"] {
            #expect(MonitorLine(text) == nil, "\(text)")
        }
        // Words are read as those of an inline command: quotes are optional.
        #expect(MonitorLine("1 [0 x] a \"\\x0\"")?.words == [Array("a".utf8), Array("x0".utf8)])
    }
}
