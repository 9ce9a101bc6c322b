/// A figure with a target: the ratio of the medians of two rows, or one median.
struct Target {
    struct Figure {
        let table: String
        let subject: String
        let metric: Metric
    }

    enum Limit {
        case most(Double)
        case least(Double)
        /// The figure is reported, and has no limit.
        case none
    }

    let what: String
    let numerator: Figure
    /// nil if the numerator itself is the figure.
    let denominator: Figure?
    let limit: Limit

    /// Creates a target for the ratio of `metric` between two rows of a table.
    init(_ what: String, _ table: String, _ ours: String, _ theirs: String, _ metric: Metric, _ limit: Limit) {
        self.what = what
        numerator = Figure(table: table, subject: ours, metric: metric)
        denominator = Figure(table: table, subject: theirs, metric: metric)
        self.limit = limit
    }

    /// A single figure.
    init(_ what: String, _ table: String, _ ours: String, _ metric: Metric, _ limit: Limit) {
        self.what = what
        numerator = Figure(table: table, subject: ours, metric: metric)
        denominator = nil
        self.limit = limit
    }

    /// - Returns: nil if a row was not measured.
    func value(_ results: Results) -> Double? {
        guard let top = results.median(numerator.table, numerator.subject, numerator.metric), top.isFinite else {
            return nil
        }
        guard let denominator else { return top }
        guard let bottom = results.median(denominator.table, denominator.subject, denominator.metric), bottom > 0 else {
            return nil
        }
        return top / bottom
    }

    /// - Returns: nil if the target has no limit.
    func isMet(_ value: Double) -> Bool? {
        switch limit {
        case .most(let limit): value <= limit
        case .least(let limit): value >= limit
        case .none: nil
        }
    }

    var limitText: String {
        switch limit {
        case .most(let limit): "≤ " + Decimal.text(limit, digits: 2)
        case .least(let limit): "≥ " + Decimal.text(limit, digits: 2)
        case .none: "-"
        }
    }
}
