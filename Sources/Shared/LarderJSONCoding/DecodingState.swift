/// A position of a decoder or container in a document, for coding paths.
struct Place {
    /// The number of steps in ``DecodingCore/steps`` that lead to this position.
    var depth: UInt16
    /// For a nested container: its index in ``DecodingCore/nested``, from which its steps are restored after reading
    /// other containers has overwritten them. For other places 0.
    var nested: UInt16 = 0
}

/// The state of reading one JSON document.
///
/// For one thread and one document at a time. A model may keep a decoder or container after its `init(from:)`. Once the
/// document is closed, such a container reads null.
final class DecodingState {
    /// Stored behind a pointer, so that Swift does not check exclusive access at run time. This is safe, because its
    /// functions never call a model.
    let core: UnsafeMutablePointer<DecodingCore>
    let types = TypeTable<any DirectlyDecodable.Type>()
    private(set) var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    init() {
        core = .allocate(capacity: 1)
        core.initialize(to: DecodingCore())
    }

    deinit {
        core.pointee.free()
        core.deinitialize(count: 1)
        core.deallocate()
        types.free()
    }

    /// - Parameter text: the document. It must stay valid until ``close()``.
    /// - Returns: false if ``DocumentIndex`` rejects the text.
    func open(_ text: UnsafeRawBufferPointer, _ userInfo: [CodingUserInfoKey: any Sendable]) -> Bool {
        self.userInfo = userInfo
        return core.pointee.open(text)
    }

    func close() { core.pointee.close() }

    func isNull(_ node: Int) -> Bool { core.pointee.node(node).kind == .null }

    // MARK: Values

    /// Reads the value at a node.
    /// - Parameters:
    ///   - place: the place of the container, for the coding path of errors.
    ///   - step: the step from the container to the value; nil if the value is at `place` itself.
    func value<Value: Decodable>(_ node: Int, _ type: Value.Type, _ place: Place, _ step: @autoclosure () -> PathStep?)
        throws -> Value
    {
        let entry = types.entry(type) { $0 as? any DirectlyDecodable.Type }
        switch entry.kind {
        case .model:
            let inner = core.pointee.enter(place, step())
            let nested = core.pointee.nested.count
            defer { core.pointee.leave(nested) }
            core.pointee.note(made: entry.objectBytes)
            return try Value(from: ValueReader(self, node, inner))
        case .direct:
            guard let direct = entry.direct else { throw corrupted("unreadable", place, step()) }
            return try self.direct(direct, node, type, place, step())
        case .bool: return unsafeBitCast(try bool(node, place, step()), to: type)
        case .string: return unsafeBitCast(try string(node, place, step()), to: type)
        case .double: return unsafeBitCast(try real(node, Double.self, place, step()), to: type)
        case .float: return unsafeBitCast(try real(node, Float.self, place, step()), to: type)
        case .int: return unsafeBitCast(try integer(node, Int.self, place, step()), to: type)
        case .int8: return unsafeBitCast(try integer(node, Int8.self, place, step()), to: type)
        case .int16: return unsafeBitCast(try integer(node, Int16.self, place, step()), to: type)
        case .int32: return unsafeBitCast(try integer(node, Int32.self, place, step()), to: type)
        case .int64: return unsafeBitCast(try integer(node, Int64.self, place, step()), to: type)
        case .int128: return unsafeBitCast(try integer(node, Int128.self, place, step()), to: type)
        case .uint: return unsafeBitCast(try integer(node, UInt.self, place, step()), to: type)
        case .uint8: return unsafeBitCast(try integer(node, UInt8.self, place, step()), to: type)
        case .uint16: return unsafeBitCast(try integer(node, UInt16.self, place, step()), to: type)
        case .uint32: return unsafeBitCast(try integer(node, UInt32.self, place, step()), to: type)
        case .uint64: return unsafeBitCast(try integer(node, UInt64.self, place, step()), to: type)
        case .uint128: return unsafeBitCast(try integer(node, UInt128.self, place, step()), to: type)
        case .date: return unsafeBitCast(try date(node, place, step()), to: type)
        case .data: return unsafeBitCast(try data(node, place, step()), to: type)
        case .url: return unsafeBitCast(try url(node, place, step()), to: type)
        case .decimal: return unsafeBitCast(try decimal(node, place, step()), to: type)
        case .uuid: return unsafeBitCast(try uuid(node, place, step()), to: type)
        }
    }

    /// Reads a ``DirectlyDecodable`` value. `direct` and `type` must be the same type.
    @inline(__always) private func direct<Direct: DirectlyDecodable, Value>(
        _ direct: Direct.Type, _ node: Int, _ type: Value.Type, _ place: Place, _ step: PathStep?
    ) throws -> Value {
        unsafeBitCast(try direct.decode(node, self, place, step), to: type)
    }

    func bool(_ node: Int, _ place: Place, _ step: @autoclosure () -> PathStep?) throws -> Bool {
        switch core.pointee.node(node).kind {
        case .yes: return true
        case .no: return false
        // Null is a type mismatch too, because Foundation does not throw `valueNotFound` for a `Bool`.
        default: throw typeMismatch(Bool.self, node, place, step())
        }
    }

    func string(_ node: Int, _ place: Place, _ step: @autoclosure () -> PathStep?) throws -> String {
        guard core.pointee.node(node).kind == .string else { throw mismatch(String.self, node, place, step()) }
        let text = core.pointee.string(node)
        core.pointee.note(made: Made.text(text.utf8.count))
        return text
    }

    func real<Value: ExactPowers>(
        _ node: Int, _ type: Value.Type, _ place: Place, _ step: @autoclosure () -> PathStep?
    ) throws -> Value {
        let found = core.pointee.node(node)
        guard found.kind == .number else { throw mismatch(type, node, place, step()) }
        guard let value = NumberText.real(core.pointee.bytes(found), type) else {
            throw outOfRange(type, place, step())
        }
        return value
    }

    @inline(__always) func integer<Value: FixedWidthInteger & Decodable>(
        _ node: Int, _ type: Value.Type, _ place: Place, _ step: @autoclosure () -> PathStep?
    ) throws -> Value {
        let found = core.pointee.node(node)
        guard found.kind == .number else { throw mismatch(type, node, place, step()) }
        let text = core.pointee.bytes(found)
        let value =
            found.isPlain ? NumberText.integer(text, type) : foundationInteger(type, UnsafeRawBufferPointer(text))
        guard let value else { throw outOfRange(type, place, step()) }
        return value
    }

    /// Returns the text of a number. Throws if the node is not a number.
    func numberText(_ node: Int, _ type: Any.Type, _ place: Place, _ step: @autoclosure () -> PathStep?) throws
        -> UnsafeRawBufferPointer
    {
        let found = core.pointee.node(node)
        guard found.kind == .number else { throw mismatch(type, node, place, step()) }
        return UnsafeRawBufferPointer(core.pointee.bytes(found))
    }

    // MARK: Errors

    @inline(never) func mismatch(_ type: Any.Type, _ node: Int, _ place: Place, _ step: PathStep?) -> DecodingError {
        isNull(node) ? nullFound(type, place, step) : typeMismatch(type, node, place, step)
    }

    @inline(never) private func typeMismatch(_ type: Any.Type, _ node: Int, _ place: Place, _ step: PathStep?)
        -> DecodingError
    {
        .typeMismatch(
            type, context("\(type) was expected, but \(core.pointee.node(node).kind.name) was found", place, step))
    }

    @inline(never) func nullFound(_ type: Any.Type, _ place: Place, _ step: PathStep?) -> DecodingError {
        .valueNotFound(type, context("\(type) was expected, but null was found", place, step))
    }

    @inline(never) func outOfRange(_ type: Any.Type, _ place: Place, _ step: PathStep?) -> DecodingError {
        corrupted("the number does not fit in \(type)", place, step)
    }

    func corrupted(_ text: String, _ place: Place, _ step: PathStep?) -> DecodingError {
        .dataCorrupted(context(text, place, step))
    }

    func context(_ text: String, _ place: Place, _ step: PathStep?) -> DecodingError.Context {
        DecodingError.Context(codingPath: core.pointee.path(place, step), debugDescription: text)
    }
}
