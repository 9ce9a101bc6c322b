import Testing

@testable import larderbench

@Suite struct OutputParsingTests {
    @Test("the CSV output of redis-benchmark is parsed") func redisBenchmarkCSV() throws {
        let output = """
            "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
            "GET","123456.78","0.250","0.064","0.239","0.399","0.543","1.967"
            """
        let report = try #require(RedisBenchmark.parse(output, "GET"))
        #expect(report.rate == 123_456.78)
        #expect(report.p50 == 0.239)
        #expect(report.p99 == 0.543)
        #expect(report.longest == 1.967)
        #expect(RedisBenchmark.parse(output, "SET") == nil)
        #expect(RedisBenchmark.parse("Could not connect", "GET") == nil)
    }

    @Test("the output lines of the diskcache script are parsed") func diskcacheLines() {
        let figures = Diskcache.parse("put 35.5 30.25\nTraceback\nget 10.0 9.5\nfirstGet x 1\n")
        #expect(figures.map(\.0) == [.put, .get])
        #expect(figures.first?.1 == [.wall: 35.5, .processor: 30.25])
    }
}
