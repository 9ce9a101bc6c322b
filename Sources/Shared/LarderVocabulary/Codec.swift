/// The encoding of an entry's value. **The numbers are stored on disk: do not change them.**
public struct Codec: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Bytes that are stored unchanged.
    public static let raw = Codec(rawValue: 0)
    /// JSON text.
    public static let json = Codec(rawValue: 1)
    /// A binary property list.
    public static let propertyList = Codec(rawValue: 2)
    /// The bytes that a program's own encoder closure returned.
    public static let custom = Codec(rawValue: 255)

    /// The name `raw`, `json`, `plist` or `custom`; for a codec that this version does not know, its number.
    public var description: String {
        switch self {
        case .raw: "raw"
        case .json: "json"
        case .propertyList: "plist"
        case .custom: "custom"
        default: "\(rawValue)"
        }
    }

    /// Parses one of the four names in ``description``, in any case. Returns nil for other text.
    public init?(name: String) {
        switch name.lowercased() {
        case "raw": self = .raw
        case "json": self = .json
        case "plist": self = .propertyList
        case "custom": self = .custom
        default: return nil
        }
    }
}
