/// A group of measurements that is run once per round.
protocol Suite: AnyObject {
    /// Measures every row once, and records failures in `results`.
    /// - Throws: ``BenchError`` if nothing of the suite can be measured, or if the user interrupts.
    func runRound(_ round: Int, into results: Results) throws(BenchError)
}
