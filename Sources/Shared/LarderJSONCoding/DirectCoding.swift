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

/// A type of the standard library that is encoded directly instead of by its `encode(to:)`, with the same result.
protocol DirectlyEncodable {
    /// Appends a value to the text, at a point where a value is expected.
    /// - Parameters:
    ///   - value: a pointer to an initialized `Self`.
    ///   - step: the value's key in the innermost open level (object or array); nil if the value itself is that level.
    static func encode(_ value: UnsafeRawPointer, _ state: EncodingState, _ step: PathStep?) throws
}

extension Array: DirectlyEncodable where Element: Encodable {
    static func encode(_ value: UnsafeRawPointer, _ state: EncodingState, _ step: PathStep?) throws {
        let level = try state.push(.array, isScope: true, step)
        var index = 0
        for element in value.assumingMemoryBound(to: Self.self).pointee {
            try state.core.pointee.beginElement(level)
            try state.encode(element, PathStep(index: index))
            index &+= 1
        }
        try state.core.pointee.pop(level.serial)
    }
}

extension Dictionary: DirectlyEncodable where Key == String, Value: Encodable {
    static func encode(_ value: UnsafeRawPointer, _ state: EncodingState, _ step: PathStep?) throws {
        let level = try state.push(.object, isScope: true, step)
        var isFirst = true
        for (key, field) in value.assumingMemoryBound(to: Self.self).pointee {
            try state.core.pointee.enter(level)
            state.core.pointee.beginDistinctField(key, isFirst: isFirst)
            try state.encode(field, PathStep(PlainKey(stringValue: key)))
            isFirst = false
        }
        try state.core.pointee.pop(level.serial)
    }
}

extension Optional: DirectlyEncodable where Wrapped: Encodable {
    static func encode(_ value: UnsafeRawPointer, _ state: EncodingState, _ step: PathStep?) throws {
        guard let wrapped = value.assumingMemoryBound(to: Self.self).pointee else {
            return state.core.pointee.text.append("null")
        }
        try state.encode(wrapped, step)
    }
}
