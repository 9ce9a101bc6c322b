// If a closure's result is inferred, the model may be an optional. Its nil then means that the origin has no value, as
// in the calls whose closure returns an optional.

private protocol OptionalModel {
    static var nothing: Self { get }
    var isNothing: Bool { get }
}

extension Optional: OptionalModel {
    fileprivate static var nothing: Self { nil }
    fileprivate var isNothing: Bool { self == nil }
}

/// Returns an origin's value; nil if it is an optional model that is nil.
package func withoutNil<Value>(_ value: Value?) -> Value? {
    guard let value, (value as? any OptionalModel)?.isNothing ?? false else { return value }
    return nil
}

/// The nil of an optional model; nil for other models.
package func nothing<Value>(of type: Value.Type) -> Value? { (type as? any OptionalModel.Type)?.nothing as? Value }
