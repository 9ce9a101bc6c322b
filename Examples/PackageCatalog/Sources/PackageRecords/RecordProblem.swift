/// The reason why a record could not be parsed. The record is skipped, and parsing continues after it.
public struct RecordProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// The number of the invalid line if it is known, or else of the record's first line; the first line is 1.
    public let line: Int
    public let message: String

    public init(line: Int, _ message: String) {
        self.line = line
        self.message = message
    }

    public var description: String { "line \(line): \(message)" }
}
