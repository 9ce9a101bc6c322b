import LarderPlatform

/// Runs redis-benchmark, to validate this program's load generator. Creates the arguments, and parses the output.
struct RedisBenchmark {
    struct Figures {
        let rate: Double
        let p50: Double
        let p99: Double
        let longest: Double
    }

    private static func command(_ load: Load) -> String { load.setPercent > 0 ? "SET" : "GET" }

    static func words(_ options: BenchOptions, _ load: Load, socket: String, requests: Int) -> [String] {
        [
            options.redisBenchmark, "-s", socket, "-c", "\(load.clients)", "-n", "\(requests)", "-r", "\(load.keys)",
            "-d", "\(load.valueBytes)", "-P", "\(load.pipeline)", "-t", command(load).lowercased(),
            "--precision", "3", "--csv",
        ]
    }

    static func run(_ options: BenchOptions, _ load: Load, socket: String, requests: Int) throws(BenchError) -> Figures
    {
        let process = try ChildProcess(
            words(options, load, socket: socket, requests: requests), outputPath: socket + ".load")
        while !process.hasEnded {
            if Interruption.isRequested {
                process.stop()
                throw .interrupted
            }
            Clocks.sleep(0.01)
        }
        let end = process.wait()
        let output = process.output
        unlink(process.outputPath)
        guard end == .exited(0), !output.contains("Error from server"), let report = parse(output, command(load)) else {
            throw BenchError("redis-benchmark failed (\(end.map { "\($0)" } ?? "no status")): \(output.suffix(300))")
        }
        return report
    }

    /// Reads the line `"GET","rps","avg","min","p50","p95","p99","max"`.
    static func parse(_ output: String, _ command: String) -> Figures? {
        for line in output.split(whereSeparator: { $0 == "\n" || $0 == "\r" }) {
            let fields = line.split(separator: ",").map { $0.filter { $0 != "\"" } }
            guard fields.count == 8, fields[0] == command else { continue }
            let numbers = fields.dropFirst().compactMap { Double($0) }
            guard numbers.count == 7 else { continue }
            return Figures(rate: numbers[0], p50: numbers[3], p99: numbers[5], longest: numbers[6])
        }
        return nil
    }
}
