/// Lengths of time in the form in which people write them: `90`, `90s`, `5m`, `250ms`.
package enum TimeSpan {
    /// The unit of a number that has no unit in the text. The raw value is its length in microseconds.
    package enum Unit: Int64, Sendable {
        case microseconds = 1
        case milliseconds = 1_000
        case seconds = 1_000_000

        var name: String {
            switch self {
            case .microseconds: "microseconds"
            case .milliseconds: "milliseconds"
            case .seconds: "seconds"
            }
        }
    }

    /// Returns the description of all valid forms, for errors about a malformed length of time.
    /// - Parameter takesFractions: whether a number without a unit may have a fraction.
    package static func rule(_ unit: Unit, takesFractions: Bool = false) -> String {
        "a number of \(unit.name)\(takesFractions ? ", also with a fraction" : ""), or one followed by us, ms, s, sec, m, min, h or d, such as 250ms, 90s, 15m or 1h"
    }

    private static let units: [String: Int64] = [
        "us": 1, "ms": 1_000, "s": 1_000_000, "sec": 1_000_000, "m": 60_000_000, "min": 60_000_000,
        "h": 3_600_000_000, "d": 86_400_000_000,
    ]

    /// Parses a whole number with a unit, in any case.
    /// - Returns: microseconds; nil if the text is malformed or too large.
    package static func microseconds(_ text: String, unit: Unit) -> Int64? {
        let lower = text.lowercased()
        let digits = lower.utf8.prefix { $0 >= 0x30 && $0 <= 0x39 }
        guard let number = Int64(String(decoding: digits, as: UTF8.self)) else { return nil }
        let name = String(lower.dropFirst(digits.count))
        guard let factor = name.isEmpty ? unit.rawValue : units[name] else { return nil }
        let (span, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : span
    }

    /// Like ``microseconds(_:unit:)``, in whole `unit`s.
    /// - Returns: nil also if the time is not a whole number of units.
    package static func parse(_ text: String, unit: Unit) -> Int64? {
        guard let span = microseconds(text, unit: unit), span % unit.rawValue == 0 else { return nil }
        return span / unit.rawValue
    }
}
