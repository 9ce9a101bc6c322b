import Platform

/// Why something could not be measured. Reported with the results, never swallowed.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// With the text of `errno`.
    static func system(_ what: String) -> BenchError { BenchError("\(what): \(SystemErrorText.of(errno))") }

    /// What is beneath throws the system's error; the benchmark has the same text of its own.
    static func mapping<Result>(_ body: () throws(FileError) -> Result) throws(BenchError) -> Result {
        do throws(FileError) { return try body() } catch { throw BenchError("cannot \(error)") }
    }

    static let interrupted = BenchError("interrupted")
}
