/// A position in the changes of a database: see ``PositionedChanges``. Store it as text, and continue there at any
/// later time, also in another process. A value.
public struct ChangePosition: Hashable, Sendable, CustomStringConvertible {
    /// The text of the position: one word.
    public let description: String

    /// Starts with all existing entries.
    public static let beginning = ChangePosition("0")
    /// Starts with the next change.
    public static let now = ChangePosition("$")

    /// - Parameter text: the ``description`` of a position. Invalid text is refused when the position is used.
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
