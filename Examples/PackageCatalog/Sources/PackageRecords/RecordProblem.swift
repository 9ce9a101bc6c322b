/// Why a record was not understood. It is left out, and the reading goes on after it.
public struct RecordProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line at which the record begins or, where it is known, the line that is wrong; the first one is 1.
    public let line: Int
    /// What is wrong.
    public let message: String

    public init(line: Int, _ message: String) {
        self.line = line
        self.message = message
    }

    /// Line and message.
    public var description: String { "line \(line): \(message)" }
}
