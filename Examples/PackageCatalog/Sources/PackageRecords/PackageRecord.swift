/// What a Debian machine knows of one version of one package.
///
/// Fields that the record does not have are nil, empty, or left out of the dictionaries.
public struct PackageRecord: Codable, Hashable, Sendable {
    public var name: String
    public var version: String
    /// The kind of machine that it is for: `amd64`, `arm64`, …, or `all`.
    public var architecture: String
    /// The source package that it is built from, with its version in brackets where that is another one.
    public var source: String?
    public var section: String?
    public var priority: String?
    public var maintainer: String?
    public var homepage: String?
    /// Whether the machine needs it to work at all.
    public var isEssential: Bool
    /// What dpkg did with it, `install ok installed` mostly; nil for a package that is only on offer.
    public var status: String?
    /// The space that it takes once installed, in bytes.
    public var installedBytes: Int64?
    /// What has to be downloaded, in bytes.
    public var downloadBytes: Int64?
    /// What it is good for, by language: `en`, `ja`, `zh_CN`, …
    public var descriptions: [String: Description]
    /// What it wants from other packages, and what it does not want, by kind.
    public var relations: [Relation.Kind: [Relation]]
    /// Names the English description, which translations refer to.
    public var descriptionMD5: String?

    /// A line about a package, and more of it.
    public struct Description: Codable, Hashable, Sendable {
        /// The one line.
        public var summary: String
        /// The lines after it; may be empty. Lines that begin with a blank are meant to be shown as they are.
        public var text: String

        public init(summary: String, text: String) {
            self.summary = summary
            self.text = text
        }
    }

    /// The English line about it; empty where there is none.
    public var summary: String { descriptions["en"]?.summary ?? "" }

    /// As dpkg names it: `bash:amd64`. One machine has at most one version of it installed.
    public var installedKey: String { "\(name):\(architecture)" }

    /// As apt names it: `bash:amd64=5.2.15-2`. Several versions may be on offer.
    public var availableKey: String { "\(name):\(architecture)=\(version)" }
}
