/// A group of measurements that is run once per round.
protocol Suite: AnyObject {
    /// Measures every row once, and notes failures in `results`.
    /// - Throws: ``BenchError`` when nothing of the suite can be measured, or when the user interrupts.
    func runRound(_ round: Int, into results: Results) throws(BenchError)
}
