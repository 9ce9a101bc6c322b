import Testing

@testable import larderbench

@Suite struct BenchOptionsTests {
    @Test func optionsHaveTheDocumentedDefaults() throws {
        let options = try BenchOptions([])
        #expect(options.roundCount == 5)
        #expect(options.roundCount(of: .socket) == 5)
        #expect(options.roundCount(of: .large) == 3)
        #expect(options.suites == Set(BenchOptions.SuiteName.allCases))
        #expect(options.largeCount == 10_000_000)
        let quick = try BenchOptions(["--quick"])
        #expect(quick.roundCount == 3)
        #expect(quick.roundCount(of: .socket) == 3)
        #expect(quick.roundCount(of: .start) == 1)
        #expect(!quick.suites.contains(.large))
    }

    @Test func optionsAreParsedFromTheCommandLine() throws {
        let options = try BenchOptions([
            "--only", "hits,socket", "--rounds", "2", "--seconds", "0.5", "--json", "a.json", "--page", "b.md",
            "--memcached", "/m", "--large", "5000",
        ])
        #expect(options.suites == [.hits, .socket])
        #expect(options.roundCount == 2)
        #expect(options.roundCount(of: .large) == 2)
        #expect(options.secondsPerRun == 0.5)
        #expect(options.jsonPath == "a.json")
        #expect(options.pagePath == "b.md")
        #expect(options.memcached == "/m")
        #expect(options.largeCount == 5000)
    }

    @Test(arguments: [
        ["--rounds"], ["--rounds", "0"], ["--rounds", "many"], ["--seconds", "-1"], ["--seconds", "nan"],
        ["--only", "sockets"], ["--only", ""], ["--only", "socket,"], ["--large", "1"], ["--unknown"], ["word"],
        ["--json", ""],
    ])
    func invalidBenchmarkOptionsAreRefused(words: [String]) {
        #expect(throws: BenchError.self) { try BenchOptions(words) }
    }

    @Test func helpNamesEverySuiteAndFitsTheScreen() {
        for suite in BenchOptions.SuiteName.allCases { #expect(BenchOption.help.contains(suite.rawValue)) }
        for line in BenchOption.help.split(separator: "\n") { #expect(line.count <= 120) }
    }

    @Test("Valkey is measured if its program is named, like redis-server") func valkeyIsMeasuredIfNamed() throws {
        #expect(try BenchOptions([]).valkeyServer == nil)
        let options = try BenchOptions(["--valkey-server", "/opt/valkey-server"])
        let valkey = Contender.valkey(like: .redisEverySecond)
        let words = valkey.words(options, directory: "d", socket: "s")
        let like = Contender.redisEverySecond.words(options, directory: "d", socket: "s")
        #expect(words.first == "/opt/valkey-server" && words.dropFirst() == like.dropFirst())
        #expect(valkey.name == "valkey AOF everysec")
    }
}
