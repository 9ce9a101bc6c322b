/// One wish of a package about other packages: any of the alternatives fulfils it.
///
/// In Debian's notation, `default-mta | mail-transport-agent` is one relation with two alternatives, and
/// `libc6 (>= 2.36)` one with one alternative that has a version constraint.
public struct Relation: Codable, Hashable, Sendable {
    /// In what way it is meant; the raw value is the name of the field.
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
        /// The architecture after the colon, `any` mostly; nil where there is none.
        public var architecture: String?
        public var constraint: VersionConstraint?

        public init(_ name: String, architecture: String? = nil, constraint: VersionConstraint? = nil) {
            self.name = name
            self.architecture = architecture
            self.constraint = constraint
        }
    }

    /// Which versions will do.
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

    /// At least one.
    public var alternatives: [Alternative]

    public init(_ alternatives: [Alternative]) { self.alternatives = alternatives }
}

extension Relation: CustomStringConvertible {
    /// In Debian's notation.
    public var description: String { alternatives.map(\.description).joined(separator: " | ") }
}

extension Relation.Alternative: CustomStringConvertible {
    /// In Debian's notation.
    public var description: String {
        name + (architecture.map { ":" + $0 } ?? "")
            + (constraint.map { " (\($0.comparison.rawValue) \($0.version))" } ?? "")
    }
}
