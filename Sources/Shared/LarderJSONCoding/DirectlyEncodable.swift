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
        let serial = try state.core.pointee.push(.array, isScope: true, step)
        let depth = state.core.pointee.top
        var index = 0
        for element in value.assumingMemoryBound(to: Self.self).pointee {
            try state.core.pointee.beginElement(depth, serial)
            try state.encode(element, PathStep(index: index))
            index &+= 1
        }
        try state.core.pointee.pop(serial)
    }
}

extension Dictionary: DirectlyEncodable where Key == String, Value: Encodable {
    static func encode(_ value: UnsafeRawPointer, _ state: EncodingState, _ step: PathStep?) throws {
        let serial = try state.core.pointee.push(.object, isScope: true, step)
        let depth = state.core.pointee.top
        var isFirst = true
        for (key, field) in value.assumingMemoryBound(to: Self.self).pointee {
            try state.core.pointee.enter(depth, serial)
            state.core.pointee.beginDistinctField(key, isFirst: isFirst)
            try state.encode(field, PathStep(PlainKey(stringValue: key)))
            isFirst = false
        }
        try state.core.pointee.pop(serial)
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
