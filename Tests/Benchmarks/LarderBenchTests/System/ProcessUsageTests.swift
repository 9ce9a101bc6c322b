import LarderPlatform
import Testing

import class LarderTestSupport.Guarded

@testable import larderbench

@Suite struct ProcessUsageTests {
    @Test("user and system time are parts of the CPU time") func userAndSystemTime() throws {
        let meter = try #require(UsageMeter(getpid()))
        var sum = 0.0
        while try #require(meter.usage).userTicks < 20 {
            for number in 0..<100_000 { sum += Double(number).squareRoot() }
        }
        let usage = try #require(meter.usage)
        #expect(sum > 0 && usage.seconds > 0.1)
        let figures = usage.figures(operations: 10)
        let all = try #require(figures[.processor])
        let parts = try #require(figures[.userProcessor]) + #require(figures[.systemProcessor])
        #expect(abs(all - parts) < 1e-6 * all && abs(all - usage.seconds * 1e5) < 1e-6 * all)
        // Either both counters exist, or the report has a reason.
        #expect((figures[.instructions] == nil) == (EventCounters.absence != nil))
        #expect((figures[.cycles] == nil) == (EventCounters.absence != nil))
    }

    @Test("the usage of several processes is added") func usageIsAdded() {
        let one = ProcessUsage(seconds: 1, userTicks: 30, systemTicks: 10, instructions: 500, cycles: 200)
        let figures = (one + one).figures(operations: 2)
        #expect(figures[.processor] == 1e6 && figures[.userProcessor] == 750_000)
        #expect(figures[.instructions] == 500 && figures[.cycles] == 200)
        #expect((one + ProcessUsage(seconds: 1)).figures(operations: 1)[.instructions] == nil)
    }

    @Test("events of threads that start later are counted", .enabled(if: countsEvents, "perf_event_open is forbidden"))
    func eventsOfLaterThreadsAreCounted() throws {
        let counters = try EventCounters(.pageFaults, of: getpid())
        let before = counters.count
        let bytes = 64 << 20
        let thread = WorkThread(name: "faults") {
            let pages = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes, alignment: 4096)
            for page in stride(from: 0, to: bytes, by: 4096) { pages[page] = 1 }
            pages.deallocate()
        }
        thread.join()
        // Pages may have 2 MiB.
        #expect(counters.count - before >= 32)
        #expect(throws: BenchError.self) { try EventCounters(.pageFaults, of: -1) }
    }

    private static let countsEvents = (try? EventCounters(.pageFaults, of: getpid())) != nil

    @Test("a busy machine is refused, with the way to measure anyway") func aBusyMachineIsRefused() throws {
        let isEnough = Guarded(false)
        let thread = WorkThread(name: "busy") { while !isEnough.with({ $0 }) {} }
        defer {
            isEnough.with { $0 = true }
            thread.join()
        }
        var options = try BenchOptions([])
        options.busyPercentMax = 1
        let error = #expect(throws: BenchError.self) { try ProcessorLoad.check(options) }
        #expect(error.map { "\($0)".contains("at most 1.0 % are allowed (--max-busy PERCENT)") } == true)
        options.busyPercentMax = 100
        #expect(try ProcessorLoad.check(options).hasSuffix(" %"))
    }
}
