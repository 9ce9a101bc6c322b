/// A model that is decoded again for every reader, although it is `Sendable`.
///
/// Decoded models of a `Sendable` type are kept and returned to several readers, who cannot notice that with plain
/// values. Classes, and collections and optionals of classes, are never shared. But a `Sendable` struct that *holds* an
/// object, immutable or synchronised, is shared together with the object: two readers get the same object, and each
/// sees the changes that the other makes to it. If each reader must have its own object, or if decoding has side
/// effects, let the model conform to this protocol:
///
/// ```swift
/// struct Session: Codable, Sendable, DecodedEachTime { var log: Logbook }    // Logbook is a class with a lock inside
/// ```
public protocol DecodedEachTime {}

/// Decides which decoded models of `Sendable` types may be returned to several readers.
package enum DecodedSharing {
    /// Whether readers of a value of this `Sendable` type cannot notice that they share it.
    package static func isAllowed(_ type: Any.Type) -> Bool {
        if type is AnyClass || type is any DecodedEachTime.Type { return false }
        guard let wrapper = type as? any ModelWrapper.Type else { return true }
        return wrapper.contents.allSatisfy(isAllowed)
    }
}

/// A type of the standard library that may be shared if its elements may.
private protocol ModelWrapper {
    static var contents: [Any.Type] { get }
}

extension Optional: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Wrapped.self] }
}
extension Array: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Element.self] }
}
extension ContiguousArray: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Element.self] }
}
extension Set: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Element.self] }
}
extension Dictionary: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Key.self, Value.self] }
}
