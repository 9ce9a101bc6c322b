/// A value being written: an object, an array, or a value for which the model has not requested a container yet.
struct Level {
    enum Kind: UInt8 {
        /// The model has not written anything yet. If it never does, `{}` is written.
        case undecided
        case object
        case array
        /// A single value that was written completely, such as a number or a string.
        case scalar
    }

    /// A unique number, by which a container checks that the level is still its own.
    var serial: UInt64 = 0
    var kind = Kind.undecided
    /// Whether the level ends when the `encode(to:)` of a model returns. Otherwise the level is a nested container,
    /// which ends when the model continues with the parent container.
    var isScope = false
    /// The number of fields or elements written so far.
    var count = 0
    var names = WrittenNames()
    /// The key of the value in the parent level.
    var step: PathStep?
}

/// The state of writing one JSON document.
///
/// The text is appended to a buffer in the order in which the model encodes. This works if a model finishes each nested
/// container before it continues with the parent, and writes each key once. Most models do: for example those with
/// synthesized `encode(to:)`, subclasses, and enums with associated values. Other models make the document *irregular*:
/// nothing more is written, and ``JSONCoder`` lets Foundation encode the model from the start.
///
/// For one thread and one document at a time. If a model uses a container after its level has ended, the container
/// detects this by the serial number, and writes nothing.
final class EncodingState {
    /// Values with more levels are encoded by Foundation. Not every level is an object or array, so such values may
    /// still be within ``JSONCoder/depthMax``.
    static let depthMax = 510
    /// Values with more levels are not passed to Foundation either, because its recursion could overflow the stack.
    static let levelsMax = 2_048

    /// Stored behind a pointer, so that Swift does not check exclusive access at run time. This is safe, because its
    /// functions never call a model.
    let core: UnsafeMutablePointer<EncodingCore>
    let types = TypeTable<any DirectlyEncodable.Type>()
    var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    init() {
        core = .allocate(capacity: 1)
        core.initialize(to: EncodingCore())
    }

    deinit {
        core.pointee.free()
        core.deinitialize(count: 1)
        core.deallocate()
        types.free()
    }

    /// Appends a value to the text, at a point where a value is expected.
    /// - Parameter step: the value's key in the innermost open level; nil if the value itself is that level.
    func encode<Value: Encodable>(_ value: Value, _ step: @autoclosure () -> PathStep?) throws {
        let entry = types.entry(Value.self) { $0 as? any DirectlyEncodable.Type }
        switch entry.kind {
        case .model:
            let level = try push(.undecided, isScope: true, step())
            try value.encode(to: ValueWriter(level))
            try core.pointee.pop(level.serial)
        case .direct:
            try withUnsafePointer(to: value) {
                try entry.direct?.encode(UnsafeRawPointer($0), self, step())
            }
        case .bool: core.pointee.text.append(isTrue: unsafeBitCast(value, to: Bool.self))
        case .string: core.pointee.text.append(quoting: unsafeBitCast(value, to: String.self))
        case .double: try encode(unsafeBitCast(value, to: Double.self), step())
        case .float: try encode(unsafeBitCast(value, to: Float.self), step())
        case .int: core.pointee.text.append(Int64(unsafeBitCast(value, to: Int.self)))
        case .int8: core.pointee.text.append(Int64(unsafeBitCast(value, to: Int8.self)))
        case .int16: core.pointee.text.append(Int64(unsafeBitCast(value, to: Int16.self)))
        case .int32: core.pointee.text.append(Int64(unsafeBitCast(value, to: Int32.self)))
        case .int64: core.pointee.text.append(unsafeBitCast(value, to: Int64.self))
        case .int128: core.pointee.text.append(number: unsafeBitCast(value, to: Int128.self).description)
        case .uint: core.pointee.text.append(UInt64(unsafeBitCast(value, to: UInt.self)))
        case .uint8: core.pointee.text.append(UInt64(unsafeBitCast(value, to: UInt8.self)))
        case .uint16: core.pointee.text.append(UInt64(unsafeBitCast(value, to: UInt16.self)))
        case .uint32: core.pointee.text.append(UInt64(unsafeBitCast(value, to: UInt32.self)))
        case .uint64: core.pointee.text.append(unsafeBitCast(value, to: UInt64.self))
        case .uint128: core.pointee.text.append(number: unsafeBitCast(value, to: UInt128.self).description)
        case .date: try encode(date: value, step())
        case .data: core.pointee.text.append(data: value)
        case .url: core.pointee.text.append(url: value)
        case .decimal: try encode(decimal: value, step())
        case .uuid: core.pointee.text.append(uuid: value)
        }
    }

    /// Begins a level. For the parameters see ``Level``.
    func push(_ kind: Level.Kind, isScope: Bool, _ step: PathStep?) throws -> OpenLevel {
        let serial = try core.pointee.push(kind, isScope: isScope, step)
        return OpenLevel(state: self, depth: core.pointee.top, serial: serial)
    }

    func encode(_ value: Double, _ step: @autoclosure () -> PathStep?) throws {
        guard value.isFinite else { throw notFinite(value, step()) }
        core.pointee.text.append(value)
    }

    func encode(_ value: Float, _ step: @autoclosure () -> PathStep?) throws {
        guard value.isFinite else { throw notFinite(value, step()) }
        core.pointee.text.append(value)
    }

    /// - Parameters:
    ///   - value: the number to show in the error. Must not be a `Date`: the `description` of a non-finite date traps.
    ///   - type: the type that the model declares for the value.
    func notFinite<Number: Encodable>(_ value: Number, of type: Any.Type = Number.self, _ step: PathStep?)
        -> EncodingError
    {
        var path = core.pointee.path(upTo: core.pointee.top)
        if let step { path.append(step.codingKey) }
        return .invalidValue(value, NotFinite.context(type, path))
    }
}

/// A level as its container knows it.
struct OpenLevel {
    let state: EncodingState
    let depth: Int
    /// By this number, the container checks that the level is still its own.
    let serial: UInt64

    var core: UnsafeMutablePointer<EncodingCore> { state.core }
    var path: [any CodingKey] { core.pointee.path(upTo: depth) }

    /// Writes a value of the container, and discards its text if that fails.
    /// - Parameter begin: writes what precedes the value.
    @inline(__always) func write<Value: Encodable>(
        _ value: Value, _ step: @autoclosure () -> PathStep?, after begin: (inout EncodingCore) throws -> Void
    ) throws {
        try core.pointee.enter(self)
        let mark = core.pointee.text.count
        try begin(&core.pointee)
        do {
            try state.encode(value, step())
        } catch {
            core.pointee.discard(self, to: mark)
            throw error
        }
    }

    /// Begins a nested level, which ends when the model continues with its container. If the document is irregular,
    /// returns a level to which nothing is written.
    /// - Parameter begin: writes what precedes the value.
    func nest(_ kind: Level.Kind, _ step: PathStep, after begin: (inout EncodingCore) throws -> Void) -> OpenLevel {
        do {
            try begin(&core.pointee)
            return try state.push(kind, isScope: false, step)
        } catch {
            return OpenLevel(state: state, depth: -2, serial: 0)
        }
    }
}

/// The error for a value with more nested objects and arrays than ``JSONCoder/depthMax``.
package struct NestingTooDeep: Error {}

/// The error for a number or date that is infinite or not a number, which JSON cannot represent.
package struct NotFinite: Error {
    /// The type that the model declares for the value: a number type or a date.
    package let type: Any.Type

    static func context(_ type: Any.Type, _ path: [any CodingKey]) -> EncodingError.Context {
        EncodingError.Context(
            codingPath: path, debugDescription: "JSON has finite numbers only", underlyingError: NotFinite(type: type))
    }
}

/// Stops the encoding of a model that does not write its text in order: see ``EncodingState``. Not for callers.
struct Irregular: Error {}

/// The data of ``EncodingState``, with all functions that do not call a model's `encode(to:)`.
struct EncodingCore {
    var text = TextWriter()
    /// The index of the innermost open level; -1 if there is none.
    private(set) var top = -1
    private(set) var isIrregular = false
    /// Whether the value has more levels than ``EncodingState/depthMax``.
    private(set) var isDeep = false
    /// Whether objects and arrays nest deeper than ``JSONCoder/depthMax``.
    private(set) var isTooDeep = false
    private var levels: UnsafeMutablePointer<Level>
    private var capacity = 16
    private var lastSerial: UInt64 = 0

    init() {
        levels = .allocate(capacity: capacity)
        levels.initialize(repeating: Level(), count: capacity)
    }

    func free() {
        text.free()
        levels.deinitialize(count: capacity)
        levels.deallocate()
    }

    /// Prepares the state for another document. Serial numbers continue, so that containers of previous documents stay
    /// invalid.
    mutating func reset() {
        text.reset()
        clearLevels()
        isIrregular = false
        isDeep = false
        isTooDeep = false
    }

    private mutating func clearLevels() {
        while top >= 0 { dropTop() }
        top = -1
    }

    mutating func becomeIrregular() -> Irregular {
        isIrregular = true
        clearLevels()
        return Irregular()
    }

    // MARK: Levels

    mutating func push(_ kind: Level.Kind, isScope: Bool, _ step: PathStep?) throws -> UInt64 {
        if isIrregular || top &+ 1 >= EncodingState.depthMax { try pushDeep() }
        top &+= 1
        if top == capacity { growLevels() }
        lastSerial &+= 1
        let level = levels + top
        level.pointee.serial = lastSerial
        level.pointee.kind = kind
        level.pointee.isScope = isScope
        level.pointee.count = 0
        level.pointee.step = step
        if kind == .object { text.append(UInt8(ascii: "{")) }
        if kind == .array { text.append(UInt8(ascii: "[")) }
        return lastSerial
    }

    @inline(never) private mutating func pushDeep() throws {
        if isIrregular { throw becomeIrregular() }
        isDeep = true
        guard top &+ 1 >= EncodingState.levelsMax else { return }
        let nested = (0...top).count { levels[$0].kind == .object || levels[$0].kind == .array }
        isTooDeep = nested > JSONCoder.depthMax
        throw becomeIrregular()
    }

    private mutating func growLevels() {
        let moved = UnsafeMutablePointer<Level>.allocate(capacity: capacity * 2)
        moved.moveInitialize(from: levels, count: capacity)
        (moved + capacity).initialize(repeating: Level(), count: capacity)
        levels.deallocate()
        levels = moved
        capacity *= 2
    }

    private mutating func dropTop() {
        levels[top].serial = 0
        levels[top].names.removeAll()
        levels[top].step = nil
        top &-= 1
    }

    /// Writes the closing bracket of the innermost level and removes the level.
    private mutating func closeTop() {
        switch levels[top].kind {
        case .undecided: text.append("{}")
        case .object: text.append(UInt8(ascii: "}"))
        case .array: text.append(UInt8(ascii: "]"))
        case .scalar: break
        }
        dropTop()
    }

    /// Ends the level of a model whose `encode(to:)` has returned, and the nested containers in it.
    mutating func pop(_ serial: UInt64) throws {
        if isIrregular { throw Irregular() }
        while top >= 0 {
            let isLast = levels[top].serial == serial
            // The model has encoded nothing, so the document would be empty. Let Foundation throw the error for that.
            if top == 0, levels[top].kind == .undecided { throw becomeIrregular() }
            closeTop()
            if isLast { return }
        }
        throw becomeIrregular()
    }

    /// Makes a level the innermost one, by ending the nested containers in it.
    @inline(__always) mutating func enter(_ level: OpenLevel) throws {
        if top == level.depth, levels[top].serial == level.serial { return }
        try leaveNested(level.depth, level.serial)
    }

    @inline(never) private mutating func leaveNested(_ depth: Int, _ serial: UInt64) throws {
        guard !isIrregular, depth >= 0, depth < top, levels[depth].serial == serial else { throw becomeIrregular() }
        while top > depth {
            if levels[top].isScope { throw becomeIrregular() }
            closeTop()
        }
    }

    /// Sets the kind of a level when the model requests a container. A model that requests the same kind again
    /// continues to write into the same object or array.
    mutating func decide(_ level: OpenLevel, _ kind: Level.Kind) throws {
        try enter(level)
        if levels[level.depth].kind == kind, kind != .scalar { return }
        guard levels[level.depth].kind == .undecided else { throw becomeIrregular() }
        levels[level.depth].kind = kind
        if kind == .object { text.append(UInt8(ascii: "{")) }
        if kind == .array { text.append(UInt8(ascii: "[")) }
    }

    /// Removes the text after `mark`: a field, an element or a single value whose encoding has failed. This is needed
    /// because the model may catch the error and continue.
    mutating func discard(_ level: OpenLevel, to mark: Int) {
        let depth = level.depth
        guard !isIrregular, top >= depth, depth >= 0, levels[depth].serial == level.serial else { return }
        while top > depth { dropTop() }
        text.count = mark
        switch levels[depth].kind {
        case .object:
            levels[depth].count &-= 1
            levels[depth].names.removeLast()
        case .array: levels[depth].count &-= 1
        case .scalar: levels[depth].kind = .undecided
        case .undecided: break
        }
    }

    // MARK: Fields and elements

    /// Writes what precedes a field's value: a comma if needed, the name and the colon.
    mutating func beginField(_ name: String, _ level: OpenLevel) throws {
        try beginElement(level)
        let start = text.count &+ 1
        text.append(quoting: name)
        guard levels[level.depth].names.insert(name, start: start, end: text.count &- 1, in: text.bytes) else {
            throw becomeIrregular()
        }
        text.append(UInt8(ascii: ":"))
    }

    /// Like ``beginField(_:_:)``, for names that are known to be distinct.
    mutating func beginDistinctField(_ name: String, isFirst: Bool) {
        if !isFirst { text.append(UInt8(ascii: ",")) }
        text.append(quoting: name)
        text.append(UInt8(ascii: ":"))
    }

    /// Writes what precedes an array's next element: a comma if needed.
    @inline(__always) mutating func beginElement(_ level: OpenLevel) throws {
        try enter(level)
        if levels[level.depth].count > 0 { text.append(UInt8(ascii: ",")) }
        levels[level.depth].count &+= 1
    }

    func count(_ level: OpenLevel) -> Int {
        let depth = level.depth
        return depth >= 0 && depth <= top && levels[depth].serial == level.serial ? levels[depth].count : 0
    }

    // MARK: Paths

    /// Returns the coding path from the root of the document to a level.
    func path(upTo depth: Int) -> [any CodingKey] {
        guard depth >= 1, depth <= top else { return [] }
        return (1...depth).compactMap { levels[$0].step?.codingKey }
    }
}
