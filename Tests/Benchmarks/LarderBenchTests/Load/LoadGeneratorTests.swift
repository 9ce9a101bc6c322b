import Testing

import class LarderTestSupport.FakeServer
import class LarderTestSupport.Guarded

@testable import larderbench

/// Tests of the load generator, with a server that sends prepared replies.
@Suite struct LoadGeneratorTests {
    /// Runs the generator against a server that sends the given replies in turn, repeatedly.
    /// - Parameter endAfter: the server closes the connection after this many requests.
    private func run(_ load: Load, dialect: Dialect = .resp, replies: [String], endAfter: Int? = nil) throws
        -> LoadReport
    {
        let count = Guarded(0)
        // The lines of memcached's protocol can be parsed as inline commands of RESP.
        let server = try FakeServer { _ in
            let number = count.with { count in
                count += 1
                return count
            }
            return number == endAfter ? .last([]) : .text(replies[(number - 1) % replies.count])
        }
        defer { server.stop() }
        return try LoadGenerator(load, socket: server.path, dialect: dialect).run()
    }

    @Test func aRunCountsRequestsErrorsAndMisses() throws {
        var load = Load.get(5, clients: 1, pipeline: 4)
        load.limit = .requests(10)
        let report = try run(load, replies: ["$5\r\nhello\r\n", "$-1\r\n"])
        #expect(report.requests == 10)
        #expect(report.misses == 5)
        #expect(report.errors == 0)
        #expect(report.latency.count == 10)
        #expect(throws: BenchError.self) { try report.check() }
        #expect(throws: Never.self) { try report.check(allowingMisses: true) }
    }

    @Test func theReportContainsTheFirstError() throws {
        var load = Load.get(5, clients: 1, pipeline: 1)
        load.limit = .requests(3)
        let report = try run(load, dialect: .memcached, replies: ["END\r\n", "SERVER_ERROR one\r\n", "ERROR\r\n"])
        #expect(report.errors == 2)
        #expect(report.misses == 1)
        #expect(report.firstError == "SERVER_ERROR one")
    }

    @Test func aConnectionClosedByTheServerIsAnError() {
        var load = Load.get(5, clients: 1, pipeline: 1)
        load.limit = .requests(100)
        #expect(throws: BenchError.self) {
            try run(load, dialect: .memcached, replies: ["END\r\n"], endAfter: 3)
        }
    }

    @Test func theLoadDoesNotExceedItsRate() throws {
        var load = Load.get(5, clients: 1, pipeline: 1).lasting(0.2)
        load.pacePerSecond = 500
        let report = try run(load, dialect: .memcached, replies: ["END\r\n"])
        // In 0.2 seconds, 100 requests are due at most.
        #expect(report.requests > 0 && report.requests <= 100)
    }

    @Test func aMissingServerIsAnError() {
        #expect(throws: BenchError.self) {
            try LoadGenerator(.get(), socket: "/nonexistent/socket", dialect: .resp).run()
        }
    }
}
