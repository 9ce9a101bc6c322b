/// A model that is decoded anew for every reader, although it is `Sendable`.
///
/// Decoded models are kept and handed out again where their type is `Sendable`: of a value nobody sees that. It is not
/// done for classes, nor for collections and optionals of classes. A `Sendable` struct that *holds* an object, immutable
/// or synchronised, is shared with it: two readers get one object, and what one changes in it the other sees. Where each
/// is to have an object of its own, or where decoding has effects of its own, the model says so by conforming to this
/// protocol:
///
/// ```swift
/// struct Session: Codable, Sendable, DecodedEachTime { var log: Logbook }    // Logbook is a class with a lock inside
/// ```
public protocol DecodedEachTime {}

/// Which decoded models may be handed out to several readers, besides what `Sendable` says of them.
package enum DecodedSharing {
    /// Whether values of a `Sendable` type are values in the eyes of their readers.
    package static func isAllowed(_ type: Any.Type) -> Bool {
        if type is AnyClass || type is any DecodedEachTime.Type { return false }
        guard let wrapper = type as? any ModelWrapper.Type else { return true }
        return wrapper.contents.allSatisfy(isAllowed)
    }
}

/// A type of the standard library that is as shareable as what it holds.
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
