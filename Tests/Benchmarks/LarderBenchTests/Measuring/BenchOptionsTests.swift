import Testing

@testable import larderbench

@Suite struct BenchOptionsTests {
    @Test func optionsHaveTheDocumentedDefaults() throws {
        let options = try BenchOptions([])
        #expect(options.roundCount == 11)
        #expect(options.roundCount(of: .socket) == 11)
        #expect(options.roundCount(of: .scale) == 3)
        #expect(options.roundCount(of: .expiryLag) == 1)
        #expect(options.suites == Set(BenchOptions.SuiteName.allCases))
        #expect(options.countsOfScale == [100_000, 1_000_000, 10_000_000])
        #expect(options.busyPercentMax == 10)
        let quick = try BenchOptions(["--quick"])
        #expect(quick.roundCount == 3)
        #expect(quick.roundCount(of: .socket) == 3)
        #expect(quick.roundCount(of: .start) == 1)
        #expect(!quick.suites.contains(.scale))
        #expect(quick.countsOfScale == [100_000, 1_000_000])
    }

    @Test func optionsAreParsedFromTheCommandLine() throws {
        let options = try BenchOptions([
            "--only", "hits,disk-bytes", "--rounds", "2", "--seconds", "0.5", "--json", "a.json", "--page", "b.md",
            "--memcached", "/m", "--scale", "5000,2000", "--simulate", "2", "--max-busy", "35", "--valkey-server", "/v",
        ])
        #expect(options.suites == [.hits, .diskBytes])
        #expect(options.roundCount == 2)
        #expect(options.roundCount(of: .scale) == 2)
        #expect(options.secondsPerRun == 0.5)
        #expect(options.jsonPath == "a.json")
        #expect(options.pagePath == "b.md")
        #expect(options.memcached == "/m")
        #expect(options.countsOfScale == [2000, 5000])
        #expect(options.secondsPerSimulation == 2)
        #expect(options.busyPercentMax == 35)
    }

    @Test(arguments: [
        ["--rounds"], ["--rounds", "0"], ["--rounds", "many"], ["--seconds", "-1"], ["--seconds", "nan"],
        ["--only", "sockets"], ["--only", ""], ["--only", "socket,"], ["--scale", "1"], ["--scale", "5000,"],
        ["--scale", "5000,5000"], ["--max-busy", "101"], ["--unknown"], ["word"],
        ["--json", ""],
    ])
    func invalidBenchmarkOptionsAreRefused(words: [String]) {
        #expect(throws: BenchError.self) { try BenchOptions(words) }
    }

    @Test func helpNamesEverySuiteAndFitsTheScreen() {
        for suite in BenchOptions.SuiteName.allCases { #expect(BenchOption.help.contains(suite.rawValue)) }
        for line in BenchOption.help.split(separator: "\n") { #expect(line.count <= 120) }
    }

    @Test("Valkey is measured with the settings of redis-server") func valkeyHasTheSettingsOfRedis() throws {
        let options = try BenchOptions(["--valkey-server", "/opt/valkey-server"])
        let words = Contender.valkeyEverySecond.words(options, directory: "d", socket: "s")
        let like = Contender.redisEverySecond.words(options, directory: "d", socket: "s")
        #expect(words.first == "/opt/valkey-server" && words.dropFirst() == like.dropFirst())
        #expect(Contender.valkeyEverySecond.name == "valkey AOF everysec")
    }
}
