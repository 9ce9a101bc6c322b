/// How busy the machine is before the measurements.
enum ProcessorLoad {
    /// Checks that other programs leave the CPUs idle.
    /// - Returns: the share of all CPUs that they use, as text.
    /// - Throws: if it exceeds the maximum.
    static func check(_ options: BenchOptions) throws(BenchError) -> String {
        guard let busy = busyPercent(during: 1) else { return "an unknown share" }
        let text = Decimal.text(busy, digits: 1) + " %"
        guard busy <= options.busyPercentMax else {
            throw BenchError(
                "other programs used \(text) of all CPUs for a second, which changes the figures; at most "
                    + "\(Decimal.text(options.busyPercentMax, digits: 1)) % are allowed (--max-busy PERCENT)")
        }
        return text
    }

    /// Returns the percentage of all CPUs that were not idle for some seconds; nil if the system does not report it.
    private static func busyPercent(during seconds: Double) -> Double? {
        guard let before = times() else { return nil }
        Clocks.sleep(seconds)
        guard let after = times(), after.all > before.all else { return nil }
        return 100 - 100 * (after.idle - before.idle) / (after.all - before.all)
    }

    /// The ticks of all CPUs since the system's start. CPUs that wait for a disk are idle.
    private static func times() -> (idle: Double, all: Double)? {
        guard let line = TextFile.read("/proc/stat")?.split(separator: "\n").first else { return nil }
        // user, nice, system, idle, iowait, irq, softirq, steal; user includes the times of guests, which follow.
        let ticks = line.split(separator: " ").dropFirst().prefix(8).compactMap { Double($0) }
        guard ticks.count == 8 else { return nil }
        return (ticks[3] + ticks[4], ticks.reduce(0, +))
    }
}
