/// Metrics in one of two text formats: OpenMetrics 1.0, or the older Prometheus format (0.0.4).
///
/// The formats differ in the names of counters, in units, and in the last line.
struct MetricsText {
    enum Format {
        case openMetrics, prometheus

        /// Chooses OpenMetrics if the scraper accepts it, otherwise the older format, which every tool supports.
        init(accept: String?) {
            self = accept?.lowercased().contains("application/openmetrics-text") == true ? .openMetrics : .prometheus
        }

        var contentType: String {
            switch self {
            case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
            case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
            }
        }
    }

    enum Kind: String {
        case counter, gauge, summary, info
    }

    struct Sample {
        var suffix = ""
        var labels: [(name: String, value: String)] = []
        let value: Double
    }

    private let format: Format
    private var text = ""

    init(_ format: Format) { self.format = format }

    /// Adds a metric family, which is a metric with all its samples. Adds nothing if there are no samples.
    /// - Parameters:
    ///   - name: the name, without the suffix `_total`. Its last word is the unit, if that is `bytes` or `seconds`.
    ///   - help: a sentence.
    mutating func add(_ kind: Kind, _ name: String, _ help: String, _ samples: [Sample]) {
        guard !samples.isEmpty else { return }
        let suffix = kind == .counter ? "_total" : kind == .info ? "_info" : ""
        let shown = format == .openMetrics ? name : name + suffix
        let type = format == .prometheus && kind == .info ? Kind.gauge : kind
        text += "# HELP \(shown) \(Self.escaped(help, quotes: format == .openMetrics))\n# TYPE \(shown) \(type)\n"
        if format == .openMetrics, let unit = ["bytes", "seconds"].first(where: { name.hasSuffix("_" + $0) }) {
            text += "# UNIT \(shown) \(unit)\n"
        }
        for sample in samples {
            let labels = sample.labels.map { "\($0.name)=\"\(Self.escaped($0.value, quotes: true))\"" }
            text += name + suffix + sample.suffix
            text += labels.isEmpty ? "" : "{" + labels.joined(separator: ",") + "}"
            text += " " + Self.number(sample.value) + "\n"
        }
    }

    /// Adds a metric family with one sample.
    mutating func add(
        _ kind: Kind, _ name: String, _ help: String, _ value: Double, labels: [(name: String, value: String)] = []
    ) { add(kind, name, help, [Sample(labels: labels, value: value)]) }

    /// Adds a metric family with a sample for each element that has a value. `sample` returns the label and the value.
    mutating func add<Element>(
        _ kind: Kind, _ name: String, _ help: String, by label: String, _ elements: some Sequence<Element>,
        _ sample: (Element) -> (label: String, value: Double)?
    ) {
        add(kind, name, help, elements.compactMap(sample).map { Sample(labels: [(label, $0.label)], value: $0.value) })
    }

    /// The complete text; nothing can be added after it.
    var finished: String { format == .openMetrics ? text + "# EOF\n" : text }

    private static func number(_ value: Double) -> String {
        // Whole numbers have no decimal point.
        value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar {
            case "\\": "\\\\"
            case "\n": "\\n"
            case "\"" where quotes: "\\\""
            default: String(scalar)
            }
        }.joined()
    }
}
