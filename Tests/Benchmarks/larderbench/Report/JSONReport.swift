#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The results as JSON, with every sample.
struct JSONReport: Encodable {
    struct Figure: Encodable {
        let median: Double?
        let minimum: Double?
        let maximum: Double?
        let samples: [Double]
    }

    struct Row: Encodable {
        let subject: String
        let figures: [String: Figure]
    }

    struct Table: Encodable {
        let title: String
        let rows: [Row]
    }

    struct TargetResult: Encodable {
        let what: String
        let value: Double
        let limit: String
        /// Nil if there is no limit.
        let isMet: Bool?
    }

    let format = 3
    let facts: [String: String]
    let tables: [Table]
    let targets: [TargetResult]
    let failures: [String]

    init(_ report: Report) {
        facts = Dictionary(report.facts, uniquingKeysWith: { first, _ in first })
        tables = report.results.tables.map { table in
            Table(
                title: table.title,
                rows: table.rows.map { row in
                    let named = row.samples.map { metric, samples in
                        // JSON cannot represent NaN and infinity, which mean an unknown value.
                        let values = samples.values.filter(\.isFinite)
                        return (
                            metric.name,
                            Figure(
                                median: samples.median?.finite, minimum: values.min(), maximum: values.max(),
                                samples: values)
                        )
                    }
                    return Row(subject: row.subject, figures: Dictionary(uniqueKeysWithValues: named))
                })
        }
        targets = report.targets.compactMap { target in
            target.value(report.results).map {
                TargetResult(what: target.what, value: $0, limit: target.limitText, isMet: target.isMet($0))
            }
        }
        failures = report.results.failures
    }

    func text() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self) + "\n"
    }
}

extension Double {
    fileprivate var finite: Double? { isFinite ? self : nil }
}
