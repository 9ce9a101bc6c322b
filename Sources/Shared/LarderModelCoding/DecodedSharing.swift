/// Marks a `Sendable` model that must be decoded again for each reader.
///
/// A cache keeps decoded models of `Sendable` types in memory and returns them to several readers. For plain values
/// this makes no difference. Objects, and collections and optionals of objects, are never kept, so each read returns
/// its own. Only callers that wait for the same fetch all get what its closure has returned. But if a `Sendable`
/// struct *contains* an object, all readers get the same object, and see each other's changes of it. If each reader
/// must have its own object, or if decoding has side effects, let the model conform to this protocol:
///
/// ```swift
/// struct Session: Codable, Sendable, DecodedEachTime { var log: Logbook }    // Logbook is a class with a lock inside
/// ```
public protocol DecodedEachTime {}

/// Decides which decoded models of `Sendable` types may be returned to several readers.
package enum DecodedSharing {
    /// Whether a decoded value of this `Sendable` type may be returned to several readers.
    package static func isAllowed(_ type: Any.Type) -> Bool {
        if type is AnyClass || type is any DecodedEachTime.Type { return false }
        guard let wrapper = type as? any ModelWrapper.Type else { return true }
        return wrapper.contents.allSatisfy(isAllowed)
    }
}

/// A generic type of the standard library whose values may be shared if values of its type parameters may be shared.
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
