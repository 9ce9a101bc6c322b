import LarderServices

extension OptionRow {
    /// Creates an option whose help is one text, which is wrapped.
    init(_ name: String, _ value: String?, _ summary: String, take: @escaping Take) {
        var lines = [""]
        for word in summary.split(separator: " ") {
            if let last = lines.last, !last.isEmpty, last.count + 1 + word.count > 92 { lines.append("") }
            lines[lines.count - 1] += (lines.last == "" ? "" : " ") + word
        }
        self.init(name, value, lines, take: take)
    }

    /// The help of some options.
    static func helpText(_ rows: [OptionRow]) -> String { helpLines(rows, column: 26).joined(separator: "\n") }
}

extension OptionValue {
    func real(_ range: ClosedRange<Double>) throws(UsageError) -> Double {
        try parsed("a number from \(range.lowerBound) to \(range.upperBound)") { text in
            Double(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// Parses a comma-separated list of different numbers, and returns them in ascending order.
    func numbers(_ range: ClosedRange<Int>) throws(UsageError) -> [Int] {
        try parsed("different numbers from \(range.lowerBound) to \(range.upperBound), separated by commas") { text in
            let words = text.split(separator: ",", omittingEmptySubsequences: false)
            let numbers = Set(words.compactMap { Int($0) }.filter(range.contains))
            return numbers.count == words.count ? numbers.sorted() : nil
        }
    }
}

extension OptionTable {
    /// Parses a command line into `target`.
    func parse(_ words: [String], into target: inout Target) throws(BenchError) {
        var rest = words.map { Array($0.utf8) }[...]
        do throws(UsageError) {
            while let option = try next(&rest) { try option.row.apply(option.value, to: &target) }
        } catch {
            throw BenchError(error.message)
        }
    }
}
