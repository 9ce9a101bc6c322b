// A closure whose result is inferred may make an optional the model: its nil means that the origin has no value, as in
// the calls whose closure returns an optional.

private protocol OptionalModel {
    static var nothing: Self { get }
    var isNothing: Bool { get }
}

extension Optional: OptionalModel {
    fileprivate static var nothing: Self { nil }
    fileprivate var isNothing: Bool { self == nil }
}

/// Returns an origin's value, with an optional model that is nil as no value.
package func withoutNil<Value>(_ value: Value?) -> Value? {
    guard let value, (value as? any OptionalModel)?.isNothing ?? false else { return value }
    return nil
}

/// The nil of an optional model; nil for other models.
package func nothing<Value>(of type: Value.Type) -> Value? { (type as? any OptionalModel.Type)?.nothing as? Value }
