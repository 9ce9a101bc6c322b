/// One version of a package, as recorded on a Debian machine.
///
/// Fields that the record lacks are nil, empty, or missing in the dictionaries.
public struct PackageRecord: Codable, Hashable, Sendable {
    public var name: String
    public var version: String
    /// The architecture that the package is for: `amd64`, `arm64`, …, or `all`.
    public var architecture: String
    /// The source package, followed by its version in parentheses if that differs from ``version``.
    public var source: String?
    public var section: String?
    public var priority: String?
    public var maintainer: String?
    public var homepage: String?
    /// Whether the system does not work without the package.
    public var isEssential: Bool
    /// The state in dpkg, usually `install ok installed`; nil for a package that is only available.
    public var status: String?
    /// The size when installed, in bytes.
    public var installedBytes: Int64?
    /// The size of the download, in bytes.
    public var downloadBytes: Int64?
    /// The descriptions by language: `en`, `ja`, `zh_CN`, …
    public var descriptions: [String: Description]
    /// The dependencies on other packages, the conflicts with them, and so on, by kind.
    public var relations: [Relation.Kind: [Relation]]
    /// The names of the packages that it depends on, and of their alternatives; sorted. Stored for an index.
    public var needs: [String]
    /// The words of the English summary, in lower case; sorted. Stored for an index.
    public var words: [String]
    /// The MD5 of the English description, by which translations refer to it.
    public var descriptionMD5: String?

    /// A description of a package: a summary line, and further text.
    public struct Description: Codable, Hashable, Sendable {
        /// The one line.
        public var summary: String
        /// The lines after the summary; may be empty. Lines that start with a space are preformatted.
        public var text: String

        public init(summary: String, text: String) {
            self.summary = summary
            self.text = text
        }
    }

    /// The English summary; empty if there is none.
    public var summary: String { descriptions["en"]?.summary ?? "" }

    /// The key used by dpkg: `bash:amd64`. At most one version of it is installed.
    public var installedKey: String { "\(name):\(architecture)" }

    /// The key used by apt: `bash:amd64=5.2.15-2`. Several versions may be available.
    public var availableKey: String { "\(name):\(architecture)=\(version)" }
}
