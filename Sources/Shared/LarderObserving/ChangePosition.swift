/// A position in the sequence of a database's changes: see ``PositionedChanges``. It can be stored as text, and used
/// later to continue there, also in another process. Thread-safe: a value.
public struct ChangePosition: Hashable, Sendable, CustomStringConvertible {
    /// The position as text without spaces.
    public let description: String

    /// The position before all changes: all existing entries are reported first.
    public static let beginning = ChangePosition("0")
    /// The current position: only later changes are reported.
    public static let now = ChangePosition("$")

    /// - Parameter text: the ``description`` of a position. If it is invalid, the call that uses the position throws.
    public init(_ text: String) { description = text }
}

extension ChangePosition: Codable {
    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
