import LarderPlatform
import Testing

import class LarderTestSupport.DaemonProcess
import class LarderTestSupport.TemporaryDirectory

@testable import larderbench

@Suite struct ExpiryLagSuiteTests {
    private let directory: TemporaryDirectory
    private let tree: TemporaryTree
    private let results = Results()

    init() throws {
        directory = try TemporaryDirectory()
        tree = try TemporaryTree(in: directory.path)
    }

    private func suite(_ options: BenchOptions, patience: Double) -> ExpiryLagSuite {
        ExpiryLagSuite(options, tree, events: 40, lifetimes: 0.3...0.5, patience: patience)
    }

    private func options() throws -> BenchOptions {
        var options = try BenchOptions(["--larderd", DaemonProcess.program(), "--scale", "3000"])
        // Valkey may be missing.
        options.valkeyServer = "/bin/false"
        return options
    }

    @Test("the suite expiry-lag counts the events of each server, and how late they are") func eventsAreTimed() throws {
        try suite(try options(), patience: 60).runRound(0, into: results)
        for contender in [Contender.larderEverySecond, .redisOff] {
            for others in [0, 3000] {
                let row = ExpiryLagSuite.row(contender.name, others)
                func value(_ metric: Metric) throws -> Double {
                    try #require(results.median(ExpiryLagSuite.table, row, metric), "\(results.failures)")
                }
                #expect(try value(.events) == 40)
                #expect(try value(.p50) <= value(.p999) && value(.p999) < 60_000)
            }
        }
        for failure in results.failures { #expect(failure.hasPrefix("valkey"), "\(failure)") }
    }

    @Test("a missing event counts as late as it was awaited") func missingEventsAreCounted() throws {
        let options = try options()
        let server = try RunningServer(.larderEverySecond, options, directory: try tree.makeDirectory("server"))
        defer { server.stopAndRemove() }
        // The server has no --notify-keyspace-events.
        let figures = try suite(options, patience: 0.5).measure(server)
        #expect(figures[.events] == 0 && figures[.p50] == 500 && figures[.p999] == 500)
    }
}
