import LarderPlatform

/// The reason why something could not be measured. It is part of the report.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// Includes the text of `errno`.
    static func system(_ what: String) -> BenchError { BenchError("\(what): \(SystemErrorText.of(errno))") }

    /// Converts a system error of `body` into an error of the benchmark.
    static func mapping<Result>(_ body: () throws(FileError) -> Result) throws(BenchError) -> Result {
        do throws(FileError) { return try body() } catch { throw BenchError("cannot \(error)") }
    }

    static let interrupted = BenchError("interrupted")
}
