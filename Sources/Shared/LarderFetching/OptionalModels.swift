// A closure that returns an optional may make Swift infer an optional as the model type itself. A nil model then means
// that the origin has no value.

private protocol OptionalModel {
    static var nothing: Self { get }
    var isNothing: Bool { get }
}

extension Optional: OptionalModel {
    fileprivate static var nothing: Self { nil }
    fileprivate var isNothing: Bool { self == nil }
}

/// Returns the value that a closure returned; nil if the model is an optional and the value is its nil.
package func withoutNil<Value>(_ value: Value?) -> Value? {
    guard let value, (value as? any OptionalModel)?.isNothing ?? false else { return value }
    return nil
}

/// Returns `.some(nil)`, the nil of the model itself, if the model type is an optional; nil for other types.
package func nothing<Value>(of type: Value.Type) -> Value? { (type as? any OptionalModel.Type)?.nothing as? Value }
