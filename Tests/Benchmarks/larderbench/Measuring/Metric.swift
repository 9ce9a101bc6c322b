/// A measured figure, which is a column of a table.
struct Metric: Hashable {
    /// The figure's name in the JSON.
    let name: String
    /// The title of the figure's column.
    let title: String
    /// The position of the figure's column.
    private let order: Int
    private let digits: Digits

    /// The number of decimals.
    enum Digits {
        /// Two for values below 100, otherwise none.
        case two
        /// One for values below 100, otherwise none.
        case one
        case none
        /// Thousands: two for values below 10, otherwise none.
        case thousands
    }

    /// - Parameter order: by default, columns have the order of the declarations below.
    private init(_ name: String, _ title: String, _ digits: Digits, order: Int = #line) {
        self.name = name
        self.title = title
        self.digits = digits
        self.order = order
    }

    static let processor = Metric("cpuMicrosecondsPerOperation", "CPU µs/op", .two)
    static let userProcessor = Metric("userCPUMicrosecondsPerOperation", "user µs/op", .two)
    static let systemProcessor = Metric("systemCPUMicrosecondsPerOperation", "system µs/op", .two)
    static let processorAtRest = Metric("cpuAtRestMicrosecondsPerOperation", "at rest µs/op", .two)
    static let instructions = Metric("instructionsPerOperation", "instructions/op", .none)
    static let cycles = Metric("cyclesPerOperation", "cycles/op", .none)
    static let otherProcessor = Metric("otherServersCPUMicrosecondsPerOperation", "the other's µs/op", .two)
    static let wall = Metric("wallMicrosecondsPerOperation", "wall µs/op", .two)
    static let rate = Metric("operationsPerSecond", "1000 op/s", .thousands)
    static let p50 = Metric("p50Milliseconds", "p50 ms", .two)
    static let p99 = Metric("p99Milliseconds", "p99 ms", .two)
    static let p999 = Metric("p999Milliseconds", "p99.9 ms", .two)
    static let longest = Metric("maxMilliseconds", "max ms", .one)
    static let loadProcessor = Metric("loadCPUMicrosecondsPerOperation", "load µs/op", .two)
    static let hitRatio = Metric("hitPercent", "hits %", .two)
    static let entries = Metric("entriesHeld", "entries", .none)
    static let events = Metric("eventsReceived", "events", .none)
    static let reloads = Metric("reloadsPerSecond", "reloads/s", .none)
    static let peakReloads = Metric("peakReloadsPerSecond", "peak reloads/s", .none)
    static let writeRate = Metric("writesPerSecond", "1000 writes/s", .thousands)
    static let reclaimBegin = Metric("reclaimBeginSeconds", "begun s", .one)
    static let reclaim = Metric("reclaimSeconds", "reclaimed s", .one)
    static let command = Metric("commandMilliseconds", "command ms", .one)
    static let start = Metric("startMilliseconds", "start ms", .one)
    static let firstRead = Metric("firstReadMilliseconds", "first GET ms", .one)
    static let startProcessor = Metric("startCPUMilliseconds", "CPU ms", .one)
    static let resident = Metric("residentMiB", "resident MiB", .one)
    static let own = Metric("residentMiBWithoutMappedFiles", "without files MiB", .one)
    static let ownShare = Metric("residentWithoutMappedFilesToMemoryLimit", "without files / --memory", .two)
    static let disk = Metric("diskMiB", "disk MiB", .one)
    static let live = Metric("liveMiB", "live MiB", .one)
    static let accepted = Metric("acceptedMiB", "accepted MiB", .one)
    static let diskWrites = Metric("diskBytesPerByteAccepted", "written / accepted", .two)
    static let shortLived = Metric("diedWithinTenMinutesPercent", "dead in 10 min %", .one)

    /// A column of a table that has one metric at several sizes or times.
    /// - Parameter position: the position of the column in its table.
    static func at(_ position: Int, _ title: String) -> Metric {
        Metric("at " + title, title, .two, order: 10_000 + position)
    }

    /// The column of a number of entries: 10^5 for 100,000.
    static func entries(_ count: Int) -> Metric {
        let digits = String(count)
        let isPower = digits.first == "1" && digits.dropFirst().allSatisfy { $0 == "0" }
        return at(count, isPower ? "10^\(digits.count - 1)" : digits)
    }

    static func isBefore(_ first: Metric, _ second: Metric) -> Bool { first.order < second.order }

    /// The text of a value in the metric's column.
    func text(_ value: Double) -> String {
        switch digits {
        case .two: Decimal.text(value, digits: value < 100 ? 2 : 0)
        case .one: Decimal.text(value, digits: value < 100 ? 1 : 0)
        case .none: Decimal.text(value, digits: 0)
        case .thousands: Decimal.text(value / 1000, digits: value < 10_000 ? 2 : 0)
        }
    }
}

extension [Metric: Double] {
    static func + (first: Self, second: Self) -> Self { first.merging(second) { $1 } }
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
