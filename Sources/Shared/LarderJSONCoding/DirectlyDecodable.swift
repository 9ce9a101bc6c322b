/// A type of the standard library that is decoded directly instead of by its `init(from:)`, with the same result.
protocol DirectlyDecodable {
    /// Reads the value at a node. The parameters are those of ``DecodingState/value(_:_:_:_:)``.
    static func decode(_ node: Int, _ state: DecodingState, _ place: Place, _ step: PathStep?) throws -> Self
}

extension Array: DirectlyDecodable where Element: Decodable {
    static func decode(_ node: Int, _ state: DecodingState, _ place: Place, _ step: PathStep?) throws -> Self {
        let found = state.core.pointee.node(node)
        guard found.kind == .array else { throw state.mismatch([Any].self, node, place, step) }
        let inner = state.core.pointee.enter(place, step)
        state.core.pointee.note(made: Made.array(Int(found.end), stride: MemoryLayout<Element>.stride))
        var elements: [Element] = []
        elements.reserveCapacity(Int(found.end))
        var element = node &+ 1
        for index in 0..<Int(found.end) {
            elements.append(try state.value(element, Element.self, inner, PathStep(index: index)))
            element = Int(state.core.pointee.node(element).next)
        }
        return elements
    }
}

extension Dictionary: DirectlyDecodable where Key == String, Value: Decodable {
    static func decode(_ node: Int, _ state: DecodingState, _ place: Place, _ step: PathStep?) throws -> Self {
        let found = state.core.pointee.node(node)
        guard found.kind == .object else { throw state.mismatch([String: Any].self, node, place, step) }
        let inner = state.core.pointee.enter(place, step)
        let stride = MemoryLayout<String>.stride + MemoryLayout<Value>.stride
        state.core.pointee.note(made: Made.dictionary(Int(found.end), stride: stride))
        var fields: [String: Value] = [:]
        fields.reserveCapacity(Int(found.end))
        var key = node &+ 1
        for _ in 0..<Int(found.end) {
            let name = state.core.pointee.string(key)
            state.core.pointee.note(made: Made.text(name.utf8.count))
            // If several fields have the same name, use the first one, and do not decode the others.
            if fields.index(forKey: name) == nil {
                fields[name] = try state.value(key &+ 1, Value.self, inner, PathStep(PlainKey(stringValue: name)))
            }
            key = Int(state.core.pointee.node(key &+ 1).next)
        }
        return fields
    }
}

extension Optional: DirectlyDecodable where Wrapped: Decodable {
    static func decode(_ node: Int, _ state: DecodingState, _ place: Place, _ step: PathStep?) throws -> Self {
        state.isNull(node) ? nil : try state.value(node, Wrapped.self, place, step)
    }
}
