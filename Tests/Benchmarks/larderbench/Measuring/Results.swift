/// The samples of one figure of one row.
struct Samples {
    private(set) var values: [Double] = []

    mutating func add(_ value: Double) { values.append(value) }

    var median: Double? {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    var minimum: Double? { values.min() }
    var maximum: Double? { values.max() }
}

/// All results, in the order of measuring.
final class Results {
    struct Row {
        let subject: String
        var samples: [Metric: Samples] = [:]
    }

    struct Table {
        let title: String
        var rows: [Row] = []

        /// The metrics for which at least one row has samples: the columns of the table.
        var metrics: [Metric] {
            Set(rows.flatMap(\.samples.keys)).sorted(by: Metric.isBefore)
        }
    }

    private(set) var tables: [Table] = []
    private(set) var failures: [String] = []

    func add(_ table: String, _ subject: String, _ values: [Metric: Double]) {
        if !tables.contains(where: { $0.title == table }) { tables.append(Table(title: table)) }
        for index in tables.indices where tables[index].title == table {
            if !tables[index].rows.contains(where: { $0.subject == subject }) {
                tables[index].rows.append(Row(subject: subject))
            }
            for row in tables[index].rows.indices where tables[index].rows[row].subject == subject {
                for (metric, value) in values {
                    tables[index].rows[row].samples[metric, default: Samples()].add(value)
                }
            }
        }
    }

    /// Runs one measurement. If it fails, records the failure and returns, so that other measurements continue.
    /// - Throws: if the user interrupts.
    func attempt(_ what: String, _ body: () throws(BenchError) -> Void) throws(BenchError) {
        try Interruption.check()
        do throws(BenchError) {
            try body()
        } catch {
            try Interruption.check()
            fail(what, error)
        }
    }

    /// Starts a server in an empty directory, runs one measurement with it, and stops it. Failures are recorded.
    /// - Throws: if the user interrupts.
    func attempt(
        _ what: String, _ contender: Contender, _ options: BenchOptions, _ tree: TemporaryTree,
        _ body: (RunningServer) throws(BenchError) -> Void
    ) throws(BenchError) {
        try attempt("\(contender.name), \(what)") { () throws(BenchError) in
            let server = try RunningServer(contender, options, directory: try tree.makeDirectory("server"))
            defer { server.stopAndRemove() }
            try body(server)
        }
    }

    /// Records a failed measurement. The same failure in a later round is recorded only once.
    func fail(_ what: String, _ error: any Error) {
        let text = "\(what): \(error)"
        guard !failures.contains(text) else { return }
        failures.append(text)
        Progress.note("NOT MEASURED: \(text)")
    }

    func median(_ table: String, _ subject: String, _ metric: Metric) -> Double? {
        tables.first { $0.title == table }?.rows.first { $0.subject == subject }?.samples[metric]?.median
    }
}
