/// A measured figure. The raw value is the figure's name in the JSON.
enum Metric: String, CaseIterable {
    case processor = "cpuMicrosecondsPerOperation"
    case processorAtRest = "cpuAtRestMicrosecondsPerOperation"
    case otherProcessor = "otherServersCPUMicrosecondsPerOperation"
    case wall = "wallMicrosecondsPerOperation"
    case rate = "operationsPerSecond"
    case p50 = "p50Milliseconds"
    case p99 = "p99Milliseconds"
    case p999 = "p999Milliseconds"
    case longest = "maxMilliseconds"
    case loadProcessor = "loadCPUMicrosecondsPerOperation"
    case hitRatio = "hitPercent"
    case entries = "entriesHeld"
    case reloads = "reloadsPerSecond"
    case peakReloads = "peakReloadsPerSecond"
    case writeRate = "writesPerSecond"
    case reclaimBegin = "reclaimBeginSeconds"
    case reclaim = "reclaimSeconds"
    case command = "commandMilliseconds"
    case start = "startMilliseconds"
    case firstRead = "firstReadMilliseconds"
    case startProcessor = "startCPUMilliseconds"
    case resident = "residentMiB"
    case disk = "diskMiB"

    /// The title of the metric's column.
    var title: String {
        switch self {
        case .processor: "CPU µs/op"
        case .processorAtRest: "at rest µs/op"
        case .otherProcessor: "the other's µs/op"
        case .wall: "wall µs/op"
        case .rate: "1000 op/s"
        case .p50: "p50 ms"
        case .p99: "p99 ms"
        case .p999: "p99.9 ms"
        case .longest: "max ms"
        case .loadProcessor: "load µs/op"
        case .hitRatio: "hits %"
        case .entries: "entries"
        case .reloads: "reloads/s"
        case .peakReloads: "peak reloads/s"
        case .writeRate: "1000 writes/s"
        case .reclaimBegin: "begun s"
        case .reclaim: "reclaimed s"
        case .command: "command ms"
        case .start: "start ms"
        case .firstRead: "first GET ms"
        case .startProcessor: "CPU ms"
        case .resident: "resident MiB"
        case .disk: "disk MiB"
        }
    }

    /// The text of a value in the metric's column.
    func text(_ value: Double) -> String {
        switch self {
        case .rate, .writeRate: Decimal.text(value / 1000, digits: value < 10_000 ? 2 : 0)
        case .processor, .processorAtRest, .otherProcessor, .wall, .p50, .p99, .p999, .loadProcessor, .hitRatio:
            Decimal.text(value, digits: value < 100 ? 2 : 0)
        case .entries, .reloads, .peakReloads: Decimal.text(value, digits: 0)
        case .longest, .command, .reclaimBegin, .reclaim, .start, .firstRead, .startProcessor, .resident, .disk:
            Decimal.text(value, digits: value < 100 ? 1 : 0)
        }
    }
}

/// Numbers as text with a fixed number of decimals, without the C library's formats.
enum Decimal {
    static func text(_ value: Double, digits: Int) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "\(value)" }
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let scaled = Int((abs(value) * scale).rounded())
        let sign = value < 0 && scaled > 0 ? "-" : ""
        guard digits > 0 else { return "\(sign)\(scaled)" }
        let whole = scaled / Int(scale)
        let rest = String(scaled % Int(scale))
        return "\(sign)\(whole)." + String(repeating: "0", count: digits - rest.count) + rest
    }
}
