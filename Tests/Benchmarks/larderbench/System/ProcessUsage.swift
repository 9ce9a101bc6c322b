import LarderPlatform

/// What processes have used: CPU time, and instructions and cycles if the machine counts them.
struct ProcessUsage {
    /// CPU seconds, user and system.
    var seconds = 0.0
    /// The ticks of the clock, a hundredth of a second each, that found the processes in user and in system mode.
    var userTicks = 0.0
    var systemTicks = 0.0
    var instructions: Double?
    var cycles: Double?

    /// The figures for a number of operations. The ticks only divide the CPU time: they are too coarse to measure it.
    func figures(operations: Int) -> [Metric: Double] {
        let count = Double(max(operations, 1))
        var figures = [Metric.processor: seconds * 1e6 / count]
        if userTicks + systemTicks >= 10 {
            let systemShare = systemTicks / (userTicks + systemTicks)
            figures[.userProcessor] = seconds * (1 - systemShare) * 1e6 / count
            figures[.systemProcessor] = seconds * systemShare * 1e6 / count
        }
        figures[.instructions] = instructions.map { $0 / count }
        figures[.cycles] = cycles.map { $0 / count }
        return figures
    }

    static func + (first: ProcessUsage, second: ProcessUsage) -> ProcessUsage { combined(first, second, +) }
    static func - (first: ProcessUsage, second: ProcessUsage) -> ProcessUsage { combined(first, second, -) }

    private static func combined(
        _ first: ProcessUsage, _ second: ProcessUsage, _ operation: (Double, Double) -> Double
    ) -> ProcessUsage {
        func counted(_ first: Double?, _ second: Double?) -> Double? {
            guard let first, let second else { return nil }
            return operation(first, second)
        }
        return ProcessUsage(
            seconds: operation(first.seconds, second.seconds),
            userTicks: operation(first.userTicks, second.userTicks),
            systemTicks: operation(first.systemTicks, second.systemTicks),
            instructions: counted(first.instructions, second.instructions),
            cycles: counted(first.cycles, second.cycles))
    }
}

/// Measures what a process uses from now on.
final class UsageMeter {
    private let process: pid_t
    private let start: ProcessUsage
    private let instructions: EventCounters?
    private let cycles: EventCounters?

    /// Starts measuring.
    /// - Returns: nil if the process has ended.
    init?(_ process: pid_t) {
        guard let start = Self.usage(of: process) else { return nil }
        self.process = process
        self.start = start
        let counts = EventCounters.absence == nil
        instructions = counts ? try? EventCounters(.instructions, of: process) : nil
        cycles = counts ? try? EventCounters(.cycles, of: process) : nil
    }

    /// The usage since the start; nil if the process has ended.
    var usage: ProcessUsage? {
        guard let now = Self.usage(of: process) else { return nil }
        var usage = now - start
        usage.instructions = instructions?.count
        usage.cycles = cycles?.count
        return usage
    }

    private static func usage(of process: pid_t) -> ProcessUsage? {
        guard let seconds = Clocks.processor(of: process) else { return nil }
        let text = TextFile.read("/proc/\(process)/stat") ?? ""
        // utime and stime are the fields 14 and 15. The second one, the name of the program in parentheses, may contain
        // spaces, so count from its end.
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        guard fields.count > 13 else { return ProcessUsage(seconds: seconds) }
        return ProcessUsage(
            seconds: seconds, userTicks: Double(fields[12]) ?? 0, systemTicks: Double(fields[13]) ?? 0)
    }
}
