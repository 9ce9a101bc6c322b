import LarderCommandCatalog
import LarderPlatform
import Synchronization

/// The number, the durations and the results of all commands. Each event loop has its own counters, so that loops do
/// not write to the same memory. The counters of all loops are added up on request. Thread-safe.
final class CommandStatistics: Sendable {
    /// The statistics of one command. `histogram` contains the number of calls that took up to 1, 2, 4, … microseconds.
    struct Sum {
        var calls = 0
        var nanoseconds = 0
        var rejected = 0
        var failed = 0
        var histogram = [Int](repeating: 0, count: CommandStatistics.bucketCount)
    }

    /// The number of classes of durations: up to 1 µs, 2 µs, 4 µs and so on to 134 s, and one for all longer ones.
    static let bucketCount = 29

    private let counters = Locked<[CommandCounter]>([])
    /// The totals at the latest times, sampled several times per second.
    private let samples = Locked<[(at: Int64, commands: Int, bytesIn: Int, bytesOut: Int)]>([])

    private static let samplesMax = 16

    func newCounter() -> CommandCounter {
        let counter = CommandCounter()
        counters.withLock { $0.append(counter) }
        return counter
    }

    var total: Int { all.reduce(0) { $0 + $1.total.read() } }

    var traffic: (bytesIn: Int, bytesOut: Int) {
        all.reduce((0, 0)) { ($0.0 + $1.bytesIn.read(), $0.1 + $1.bytesOut.read()) }
    }

    private var all: [CommandCounter] { counters.withLock { $0 } }

    func reset() {
        for counter in all { counter.reset() }
        samples.withLock { $0 = [] }
    }

    /// Adds a sample of the totals.
    /// - Parameter now: the current time of the monotonic clock, in milliseconds.
    func sample(at now: Int64) {
        let (total, traffic) = (total, traffic)
        samples.withLock { samples in
            // If there is less of anything than before, the statistics were reset: drop the samples.
            if let last = samples.last,
                total < last.commands || traffic.bytesIn < last.bytesIn || traffic.bytesOut < last.bytesOut
            {
                samples = []
            }
            samples.append((now, total, traffic.bytesIn, traffic.bytesOut))
            if samples.count > Self.samplesMax { samples.removeFirst() }
        }
    }

    /// The present numbers of commands, received bytes and sent bytes per second.
    var perSecond: (commands: Int, bytesIn: Int, bytesOut: Int) {
        samples.withLock { samples in
            guard let first = samples.first, let last = samples.last, last.at > first.at else { return (0, 0, 0) }
            let rate = { (from: Int, to: Int) in (to - from) * 1000 / Int(last.at - first.at) }
            return (
                rate(first.commands, last.commands), rate(first.bytesIn, last.bytesIn),
                rate(first.bytesOut, last.bytesOut)
            )
        }
    }

    /// The statistics of each command that was called or refused, by the command's number.
    var sums: [Int: Sum] {
        var sums: [Int: Sum] = [:]
        for counter in all { counter.add(to: &sums) }
        return sums
    }
}

/// The counters of one loop.
///
/// `@unchecked Sendable`: the counters are atomic; their memory is allocated and freed with the object.
final class CommandCounter: @unchecked Sendable {
    private static let fields = 4 + CommandStatistics.bucketCount
    let total = Atomic<Int>(0)
    let bytesIn = Atomic<Int>(0)
    let bytesOut = Atomic<Int>(0)
    private let cells: UnsafeMutablePointer<Atomic<Int>>

    init() {
        let count = CommandMetadata.numberMax * Self.fields
        cells = .allocate(capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: CommandMetadata.numberMax * Self.fields)
        cells.deallocate()
    }

    /// Counts a command that has run.
    func ran(_ number: Int, nanoseconds: Int64, failed: Bool) {
        let start = cells + number * Self.fields
        let microseconds = Int(nanoseconds / 1000)
        start[0].add()
        start[1].add(Int(nanoseconds))
        if failed { start[3].add() }
        start[4 + Self.bucket(microseconds)].add()
    }

    /// Counts several calls of one command that were not timed one by one.
    func ran(_ number: Int, times: Int, nanosecondsEach: Int64) {
        let start = cells + number * Self.fields
        start[0].add(times)
        start[1].add(Int(nanosecondsEach) * times)
        start[4 + Self.bucket(Int(nanosecondsEach / 1000))].add(times)
    }

    /// Counts a call as failed, in addition to ``ran(_:times:nanosecondsEach:)``.
    func failed(_ number: Int) { cells[number * Self.fields + 3].add() }

    /// Counts a command that was refused before it ran.
    func rejected(_ number: Int) { cells[number * Self.fields + 2].add() }

    private static func bucket(_ microseconds: Int) -> Int {
        guard microseconds > 1 else { return 0 }
        return min(CommandStatistics.bucketCount - 1, Int.bitWidth - (microseconds - 1).leadingZeroBitCount)
    }

    fileprivate func reset() {
        for index in 0..<(CommandMetadata.numberMax * Self.fields) { cells[index].store(0, ordering: .relaxed) }
        total.store(0, ordering: .relaxed)
        bytesIn.store(0, ordering: .relaxed)
        bytesOut.store(0, ordering: .relaxed)
    }

    fileprivate func add(to sums: inout [Int: CommandStatistics.Sum]) {
        for number in 0..<CommandMetadata.numberMax {
            let start = cells + number * Self.fields
            let (calls, rejected) = (start[0].read(), start[2].read())
            guard calls > 0 || rejected > 0 else { continue }
            var sum = sums[number] ?? CommandStatistics.Sum()
            sum.calls += calls
            sum.nanoseconds += start[1].read()
            sum.rejected += rejected
            sum.failed += start[3].read()
            for bucket in 0..<CommandStatistics.bucketCount { sum.histogram[bucket] += start[4 + bucket].read() }
            sums[number] = sum
        }
    }
}

extension CommandStatistics.Sum {
    var microseconds: Int { nanoseconds / 1000 }

    /// Returns a duration in microseconds within which the given share (0 to 1) of the calls has ended.
    func percentile(_ share: Double) -> Double {
        let total = histogram.reduce(0, +)
        var seen = 0
        for (bucket, count) in histogram.enumerated() {
            seen += count
            if Double(seen) >= Double(total) * share, count > 0 { return Double(1 << bucket) }
        }
        return 0
    }
}

/// The number of error replies by their code, for INFO. The code is the first word of the error. Thread-safe.
final class ErrorCounts: Sendable {
    /// The maximum number of codes with their own count. A limit is necessary, because the first word may come from a
    /// client's request.
    private static let codesMax = 128

    private let counts = Locked<(byCode: [String: Int], total: Int)>(([:], 0))

    func count(_ text: [UInt8]) {
        let code = String(decoding: text.prefix { $0 != 0x20 }.prefix(32), as: UTF8.self)
        counts.withLock {
            $0.total += 1
            if $0.byCode[code] != nil || $0.byCode.count < Self.codesMax { $0.byCode[code, default: 0] += 1 }
        }
    }

    func reset() { counts.withLock { $0 = ([:], 0) } }

    var all: (byCode: [String: Int], total: Int) { counts.withLock { $0 } }
}
