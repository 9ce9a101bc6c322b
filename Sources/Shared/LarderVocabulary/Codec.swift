/// How the payload of an entry is encoded. **On disk: do not change these values.**
public struct Codec: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Bytes, stored as they are.
    public static let raw = Codec(rawValue: 0)
    /// JSON text.
    public static let json = Codec(rawValue: 1)
    /// A binary property list.
    public static let propertyList = Codec(rawValue: 2)
    /// The result of the program's own encoder closure.
    public static let custom = Codec(rawValue: 255)

    /// `raw`, `json`, `plist`, `custom`, or the number of a codec that this version does not know.
    public var description: String {
        switch self {
        case .raw: "raw"
        case .json: "json"
        case .propertyList: "plist"
        case .custom: "custom"
        default: "\(rawValue)"
        }
    }

    /// Parses what ``description`` writes for the four named codecs.
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
