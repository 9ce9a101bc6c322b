/// Overwrites and expiry of cached values during a simulated time, such as a day, that takes some minutes. Keys have a
/// Zipf distribution (exponent 1.0).
struct Simulation {
    /// The simulated time is divided into steps of equal length. Each has the same number of SETs, which are sent as
    /// fast as possible.
    let steps: Int
    /// The real time of a step.
    let secondsPerStep: Double
    let setsPerStep: Int
    let keys: Int
    /// The kinds of SETs of a step.
    let kinds: (Int) -> [Load.Kind]

    /// - Parameter afterStep: gets the number of the step, counted from 1.
    func run(
        _ server: RunningServer, _ ledger: Ledger, afterStep: (Int) throws(BenchError) -> Void
    ) throws(BenchError) {
        let start = Clocks.monotonic()
        for step in 0..<steps {
            // With one client, the server stores the values of a key in the order of the ledger.
            var load = Load.set(clients: 1, pipeline: 64, keys: keys, order: .zipf(exponent: 1))
            load.kinds = kinds(step)
            load.limit = .requests(setsPerStep)
            load.seed = UInt64(step + 1)
            try LoadGenerator.run(load, server, ledger: ledger).check()
            let end = start + Double(step + 1) * secondsPerStep
            while Clocks.monotonic() < end {
                try Interruption.check()
                Clocks.sleep(min(0.2, max(end - Clocks.monotonic(), 0)))
            }
            try afterStep(step + 1)
        }
    }
}
