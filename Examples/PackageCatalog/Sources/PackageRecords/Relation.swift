/// One relation of a package to others; any of the alternatives satisfies it.
///
/// In Debian's notation, `default-mta | mail-transport-agent` is one relation with two alternatives, and
/// `libc6 (>= 2.36)` is one relation with one alternative, which has a version constraint.
public struct Relation: Codable, Hashable, Sendable {
    /// The kind of a relation; the raw value is the name of the field.
    public enum Kind: String, Codable, CodingKeyRepresentable, CaseIterable, Sendable {
        case preDepends = "Pre-Depends"
        case depends = "Depends"
        case recommends = "Recommends"
        case suggests = "Suggests"
        case enhances = "Enhances"
        case breaks = "Breaks"
        case conflicts = "Conflicts"
        case replaces = "Replaces"
        case provides = "Provides"
    }

    /// A package, real or virtual.
    public struct Alternative: Codable, Hashable, Sendable {
        public var name: String
        /// The architecture after the colon, usually `any`; nil if there is none.
        public var architecture: String?
        public var constraint: VersionConstraint?

        public init(_ name: String, architecture: String? = nil, constraint: VersionConstraint? = nil) {
            self.name = name
            self.architecture = architecture
            self.constraint = constraint
        }
    }

    /// The accepted versions.
    public struct VersionConstraint: Codable, Hashable, Sendable {
        /// How a version must compare.
        public enum Comparison: String, Codable, Sendable {
            case earlier = "<<"
            case earlierOrEqual = "<="
            case equal = "="
            case laterOrEqual = ">="
            case later = ">>"
        }

        public var comparison: Comparison
        public var version: String

        public init(_ comparison: Comparison, _ version: String) {
            self.comparison = comparison
            self.version = version
        }
    }

    /// Contains at least one element.
    public var alternatives: [Alternative]

    public init(_ alternatives: [Alternative]) { self.alternatives = alternatives }
}

extension Relation: CustomStringConvertible {
    /// The text in Debian's notation.
    public var description: String { alternatives.map(\.description).joined(separator: " | ") }
}

extension Relation.Alternative: CustomStringConvertible {
    /// The text in Debian's notation.
    public var description: String {
        name + (architecture.map { ":" + $0 } ?? "")
            + (constraint.map { " (\($0.comparison.rawValue) \($0.version))" } ?? "")
    }
}
