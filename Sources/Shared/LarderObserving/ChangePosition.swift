/// How far somebody has read the changes of a database: see ``PositionedChanges``. Keep it as text, and go on there at any
/// later time, in another process too. A value.
public struct ChangePosition: Hashable, Sendable, CustomStringConvertible {
    /// One word.
    public let description: String

    /// Begin with all entries that there are.
    public static let beginning = ChangePosition("0")
    /// Begin with what changes from now on.
    public static let now = ChangePosition("$")

    /// - Parameter text: the ``description`` of a position. What is none is refused where it is used.
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
