/// Why something could not be measured. Reported with the results, never swallowed.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// With the text of `errno`.
    static func system(_ what: String) -> BenchError { BenchError("\(what): \(String(cString: strerror(errno)))") }

    static let interrupted = BenchError("interrupted")
}
