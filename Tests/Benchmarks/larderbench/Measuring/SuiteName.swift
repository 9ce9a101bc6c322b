import LarderServices

extension BenchOptions {
    /// The suites, in the order in which they run.
    enum SuiteName: String, CaseIterable {
        case socket, steady, crosscheck, mixed, bystander, start, memory, churn
        case diskBytes = "disk-bytes"
        case expiry
        case expiryLag = "expiry-lag"
        case scale, embedded, models, documents, fetching, hits, settings, origin

        /// Whether `--quick` runs the suite if `--only` is not given.
        var isInQuickRuns: Bool {
            switch self {
            case .crosscheck, .diskBytes, .expiry, .expiryLag, .scale, .settings, .origin: false
            default: true
            }
        }

        /// The maximum number of rounds for a suite.
        func roundsMax(isQuick: Bool) -> Int {
            switch self {
            case .socket, .crosscheck: .max
            case .steady, .mixed, .bystander, .start, .memory, .embedded, .models, .documents, .fetching:
                isQuick ? 1 : .max
            case .churn, .diskBytes, .expiry, .scale, .hits, .settings, .origin: isQuick ? 1 : 3
            case .expiryLag: 1
            }
        }

        /// The names of suites, as a list for the help.
        static func list(where isIncluded: (SuiteName) -> Bool = { _ in true }) -> String {
            allCases.filter(isIncluded).map(\.rawValue).joined(separator: ", ")
        }

        /// Parses a comma-separated list of names.
        static func set(_ list: OptionValue) throws(UsageError) -> Set<SuiteName> {
            var result: Set<SuiteName> = []
            for part in list.text.split(separator: ",", omittingEmptySubsequences: false) {
                guard let suite = SuiteName(rawValue: String(part)) else {
                    throw list.error("'\(part)' must be one of \(Self.list())")
                }
                result.insert(suite)
            }
            return result
        }
    }
}
