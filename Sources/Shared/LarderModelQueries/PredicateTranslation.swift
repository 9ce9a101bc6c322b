import LarderJSONCoding
import LarderModelCoding

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Translates a `#Predicate` into the words of a query. What has no words, or may mean something else in JSON, is left
/// to the predicate itself.
struct PredicateTranslation {
    /// A condition that holds for all models for which an expression is true.
    struct Found {
        let condition: ConditionWords
        /// Whether it holds for no others.
        var isExact = true

        init(_ condition: ConditionWords, isExact: Bool = true) {
            (self.condition, self.isExact) = (condition, isExact)
        }
    }

    let codec: ModelCodec
    /// The paths of the variables; empty for the model.
    fileprivate var paths: [PredicateExpressions.VariableID: String]
    /// The kinds of expressions that were not translated, for `explain()`.
    private(set) var untranslated: [String] = []
    /// The key paths that lead to each path that was found, from the model.
    fileprivate var properties: [String: [AnyKeyPath]] = [:]
    /// For the properties of the model that were found.
    fileprivate(set) var checks: [PropertyChecks.Check] = []

    init(_ codec: ModelCodec, _ model: PredicateExpressions.VariableID) { (self.codec, paths) = (codec, [model: ""]) }

    /// Returns nil if nothing can be translated.
    mutating func translate(_ expression: any PredicateExpression) -> Found? {
        let found: Found? =
            if let translatable = expression as? any TranslatableExpression {
                translatable.translation(&self)
            } else {
                (constant(expression) as? Bool).map { Found($0 ? .always : .never) }
            }
        if !(found?.isExact ?? false), untranslated.isEmpty || !(expression is any LogicalExpression) {
            untranslated.append(String("\(type(of: expression))".prefix { $0 != "<" }))
        }
        return found
    }

    /// The path of a stored property; nil for other expressions.
    fileprivate mutating func path(_ expression: any PredicateExpression) -> String? {
        (expression as? any PathExpression)?.path(&self).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The value of an expression without variables.
    fileprivate func constant(_ expression: any PredicateExpression) -> Any? {
        func value<Expression: PredicateExpression>(_ expression: Expression) -> Any? {
            try? expression.evaluate(PredicateBindings())
        }
        return value(expression)
    }

    /// The JSON of a value whose equality in Swift is that of its JSON; nil for others.
    fileprivate func equatable(_ value: Any) -> JSONText? {
        guard let encodable = value as? any Encodable, let text = try? codec.json(of: encodable) else { return nil }
        switch value {
        case is String, is Bool, is UUID: return text
        case let value as any RawRepresentable where Mirror(reflecting: value).displayStyle == .enum:
            return text.bytes.first == UInt8(ascii: "{") ? nil : text
        default: return text.isNull ? text : try? OrderedValue.json(value, codec)
        }
    }

    /// A path and a constant, in either order.
    fileprivate mutating func operands(
        _ left: any PredicateExpression, _ right: any PredicateExpression
    ) -> (path: String, value: Any, isSwapped: Bool)? {
        if let path = path(left) { return constant(right).map { (path, $0, false) } }
        return path(right).flatMap { path in constant(left).map { (path, $0, true) } }
    }

    fileprivate mutating func equality(_ left: any PredicateExpression, _ right: any PredicateExpression)
        -> ConditionWords?
    {
        operands(left, right).flatMap { operands in
            equatable(operands.value).map { ConditionWords(operands.path, equals: $0) }
        }
    }

    fileprivate func range(_ range: Any, _ path: String) -> Found? {
        (try? ConditionWords(path, range, codec)).map { Found($0) }
    }
}

private typealias Found = PredicateTranslation.Found

/// An expression that may have words.
private protocol TranslatableExpression { func translation(_ translation: inout PredicateTranslation) -> Found? }
/// An expression that consists of others that are true or false.
private protocol LogicalExpression {}
/// An expression that may be a stored property.
private protocol PathExpression { func path(_ translation: inout PredicateTranslation) -> String? }

// MARK: Properties

extension PredicateExpressions.Variable: PathExpression {
    fileprivate func path(_ translation: inout PredicateTranslation) -> String? { translation.paths[key] }
}

extension PredicateExpressions.KeyPath: PathExpression, TranslatableExpression {
    fileprivate func path(_ translation: inout PredicateTranslation) -> String? {
        // The properties of the standard library's types are not fields of their JSON.
        let isLibraryType = ["Swift.", "Foundation"].contains { String(reflecting: Root.Output.self).hasPrefix($0) }
        guard !isLibraryType, let root = (root as? any PathExpression)?.path(&translation),
            let names = PropertyPath.names(of: keyPath)
        else { return nil }
        let place = root.isEmpty ? names : root + "." + names
        let outer = translation.properties[root] ?? []
        translation.properties[place] = outer + [keyPath]
        if let path = EditPath(place), let check = PropertyChecks.Check(path, keyPath, in: outer, .predicate) {
            translation.checks.append(check)
        }
        return place
    }

    /// A property that is true or false.
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        guard Output.self == Bool.self, let path = translation.path(self), let yes = JSONText("true") else {
            return nil
        }
        return Found(ConditionWords(path, equals: yes))
    }
}

extension PredicateExpressions.ForcedUnwrap: PathExpression {
    fileprivate func path(_ translation: inout PredicateTranslation) -> String? { translation.path(inner) }
}

extension PredicateExpressions.OptionalFlatMap: PathExpression, TranslatableExpression {
    fileprivate func path(_ translation: inout PredicateTranslation) -> String? {
        guard let path = translation.path(wrapped) else { return nil }
        translation.paths[variable.key] = path
        return translation.path(transform)
    }

    /// `if let`: nil does not match.
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        guard let path = translation.path(wrapped) else { return nil }
        translation.paths[variable.key] = path
        return translation.translate(transform)
    }
}

extension PredicateExpressions.NilCoalesce: TranslatableExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        translation.constant(rhs) as? Bool == false ? translation.translate(lhs) : nil
    }
}

// MARK: Logic

extension PredicateExpressions.Conjunction: TranslatableExpression, LogicalExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        let found = [translation.translate(lhs), translation.translate(rhs)].compactMap(\.self)
        if found.isEmpty { return nil }
        return Found(.all(found.map(\.condition)), isExact: found.count == 2 && found.allSatisfy(\.isExact))
    }
}

extension PredicateExpressions.Disjunction: TranslatableExpression, LogicalExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        let (left, right) = (translation.translate(lhs), translation.translate(rhs))
        guard let left, let right else { return nil }
        return Found(.any([left.condition, right.condition]), isExact: left.isExact && right.isExact)
    }
}

extension PredicateExpressions.Negation: TranslatableExpression, LogicalExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        translation.translate(wrapped).flatMap { $0.isExact ? Found(.not($0.condition)) : nil }
    }
}

// MARK: Comparisons

extension PredicateExpressions.Equal: TranslatableExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        translation.equality(lhs, rhs).map { Found($0) }
    }
}

extension PredicateExpressions.NotEqual: TranslatableExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        translation.equality(lhs, rhs).map { Found(.not($0)) }
    }
}

extension PredicateExpressions.Comparison: TranslatableExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        guard let operands = translation.operands(lhs, rhs),
            let text = try? OrderedValue.json(operands.value, translation.codec)
        else { return nil }
        let word: String? =
            switch op {
            case .lessThan: operands.isSwapped ? ">" : "<"
            case .lessThanOrEqual: operands.isSwapped ? ">=" : "<="
            case .greaterThan: operands.isSwapped ? "<" : ">"
            case .greaterThanOrEqual: operands.isSwapped ? "<=" : ">="
            @unknown default: nil
            }
        return word.map { Found(ConditionWords(operands.path, $0, QueryWord.operand(text))) }
    }
}

extension PredicateExpressions.RangeExpressionContains: TranslatableExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        guard let path = translation.path(element), let range = translation.constant(range) else { return nil }
        return translation.range(range, path)
    }
}

extension PredicateExpressions.SequenceContains: TranslatableExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        if let path = translation.path(sequence) {
            guard (try? translation.codec.requireArray(LHS.Output.self)) != nil else { return nil }
            let value = translation.constant(element).flatMap { translation.equatable($0) }
            return value.map { Found(ConditionWords(path, "=", QueryWord.operand($0))) }
        }
        guard let path = translation.path(element), let values = translation.constant(sequence) else { return nil }
        if values is any KnownRange { return translation.range(values, path) }
        func elements(_ collection: some Collection) -> [Any] { collection.map { $0 as Any } }
        guard let all = (values as? any Collection).map({ elements($0) }) else { return nil }
        let texts = all.compactMap { translation.equatable($0) }
        return texts.count == all.count ? Found(ConditionWords(path, isIn: texts)) : nil
    }
}

// MARK: Text

extension PredicateExpressions.SequenceStartsWith: TranslatableExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        guard let path = translation.path(base), let prefix = translation.constant(prefix) as? String else {
            return nil
        }
        return Found(ConditionWords(path, "PREFIX", [Array(prefix.utf8)]))
    }
}

extension PredicateExpressions.CollectionContainsCollection: TranslatableExpression {
    fileprivate func translation(_ translation: inout PredicateTranslation) -> Found? {
        guard let path = translation.path(base), let text = translation.constant(other) as? String,
            text.utf8.count <= 1000
        else { return nil }
        // The characters of a pattern match at least themselves.
        return Found(
            ConditionWords(path, "LIKE", [Array("*\(text)*".utf8)]),
            isExact: !text.contains("*") && !text.contains("?"))
    }
}
