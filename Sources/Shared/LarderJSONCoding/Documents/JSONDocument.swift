/// A JSON text whose values can be found, compared and replaced.
///
/// A value is identified by the number of its node in a ``DocumentIndex``. The numbers have the order of the text, so
/// the values within a value have the numbers between its own and ``next(_:)``.
///
/// Borrows the text, which must stay valid and unchanged. Use it on one thread at a time. Its memory is 16 bytes for
/// each value and each name in the text.
package struct JSONDocument: ~Copyable {
    package typealias Kind = JSONKind

    /// The whole document.
    package static let root = DocumentIndex.root

    package private(set) var text: UnsafeRawBufferPointer
    private var index: DocumentIndex

    /// A document without values, for ``load(_:)``.
    package init() { (text, index) = (UnsafeRawBufferPointer(start: nil, count: 0), DocumentIndex(locates: true)) }

    /// Replaces the document by another text, and reuses the memory. Read values only if the text is JSON.
    /// - Returns: whether the text is JSON.
    package mutating func load(_ text: UnsafeRawBufferPointer) -> Bool {
        index.reset()
        self.text = text
        return index.build(text)
    }

    /// Returns nil if the text is not JSON as ``JSONOutline`` accepts it. White space around the value is allowed.
    package init?(_ text: UnsafeRawBufferPointer) { do { try self.init(parsing: text) } catch { return nil } }

    package init(parsing text: UnsafeRawBufferPointer) throws(JSONOutline.Defect) {
        var index = DocumentIndex(locates: true)
        guard index.build(text) else {
            defer { index.free() }
            throw JSONOutline.Defect(offset: max(0, index.bytesRead - 1))
        }
        self.text = text
        self.index = index
    }

    deinit { index.free() }

    /// The number after the last value of the document.
    package var end: Int { index.count }

    package func kind(_ value: Int) -> Kind { index.nodes[value].kind }

    package func isContainer(_ value: Int) -> Bool { kind(value) == .object || kind(value) == .array }

    /// Whether a number has neither a fraction nor an exponent.
    package func isInteger(_ value: Int) -> Bool { kind(value) == .number && index.nodes[value].isPlain }

    /// The number after a value and everything in it.
    package func next(_ value: Int) -> Int { Int(index.nodes[value].next) }

    /// The range of a value in the text: for a string with its quotes, for an object or array with its brackets.
    package func place(_ value: Int) -> Range<Int> {
        let node = index.nodes[value]
        let quote = node.kind == .string ? 1 : 0
        return Int(node.start) - quote..<Int(node.end) + quote
    }

    package func bytes(_ value: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: text[place(value)]) }

    /// Whether a string or name contains escapes.
    package func hasEscapes(_ value: Int) -> Bool { index.nodes[value].hasEscapes }

    /// The bytes of a string or number, without quotes; a string may contain escapes.
    package func content(_ value: Int) -> UnsafeBufferPointer<UInt8> {
        let node = index.nodes[value]
        // Safe, because the index contains only positions within the text.
        return UnsafeRawBufferPointer(rebasing: text[Int(node.start)..<Int(node.end)]).assumingMemoryBound(
            to: UInt8.self)
    }

    /// The value of a string, or the name of a member.
    package func string(_ value: Int) -> String {
        index.nodes[value].hasEscapes ? StringText.unescaped(content(value)) : StringText.plain(content(value))
    }

    /// The value of a number as a double; nil if it is too large.
    package func double(_ value: Int) -> Double? { NumberText.double(content(value)) }

    /// The value of an integer; nil if the number has a fraction or an exponent, or does not fit.
    package func integer(_ value: Int) -> Int64? {
        isInteger(value) ? NumberText.integer(content(value), Int64.self) : nil
    }

    /// Adds a number to a number, or multiplies them. See ``JSONNumber/combine(_:_:multiplies:)``.
    package func combining(
        _ number: Int, with other: JSONText, multiplies: Bool
    ) throws(JSONNumber.Failure) -> [UInt8] {
        let digits = content(number)
        return try other.bytes.withUnsafeBufferPointer { (other) throws(JSONNumber.Failure) in
            try JSONNumber.combine(digits, other, multiplies: multiplies)
        }
    }

    // MARK: Content

    /// The elements of an array, or the values of an object's members.
    package func children(_ value: Int) -> [Int] {
        switch kind(value) {
        case .array:
            var found: [Int] = []
            var child = value + 1
            while child < next(value) {
                found.append(child)
                child = next(child)
            }
            return found
        case .object: return members(value).map { $0 + 1 }
        default: return []
        }
    }

    package func element(_ index: Int, of array: Int) -> Int? {
        guard index >= 0 else { return nil }
        let end = next(array)
        var (element, left) = (array + 1, index)
        while element < end, left > 0 { (element, left) = (next(element), left - 1) }
        return element < end ? element : nil
    }

    /// The names of an object's members. The member's value has the number after that of the name.
    package func members(_ object: Int) -> [Int] {
        guard kind(object) == .object else { return [] }
        var names: [Int] = []
        var name = object + 1
        while name < next(object) {
            names.append(name)
            name = next(name + 1)
        }
        return names
    }

    /// The value of an object's member; nil if there is none. If the text repeats a name, its first value counts, as
    /// for models.
    package func member(_ name: String, of object: Int) -> Int? { member(Array(name.utf8), of: object) }

    /// Like ``member(_:of:)-(String,_)``, with the UTF-8 of a name.
    package func member(_ name: [UInt8], of object: Int) -> Int? {
        guard kind(object) == .object else { return nil }
        return name.withUnsafeBufferPointer { name in
            let (nodes, end) = (index.nodes, next(object))
            var member = object + 1
            while member < end {
                if isNamed(member, name) { return member + 1 }
                member = Int(nodes[member + 1].next)
            }
            return nil
        }
    }

    /// Whether a member of an object has a name, in UTF-8.
    package func isNamed(_ member: Int, _ name: [UInt8]) -> Bool {
        name.withUnsafeBufferPointer { isNamed(member, $0) }
    }

    private func isNamed(_ member: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let node = index.nodes[member]
        if node.hasEscapes { return string(member).utf8.elementsEqual(name) }
        return Int(node.end &- node.start) == name.count && content(member).isEqual(to: name)
    }

    /// The number of elements of an array, or of members of an object.
    package func count(_ value: Int) -> Int { children(value).count }

    // MARK: Comparison

    /// Whether two values are equal: numbers by their value, objects without regard to the order of their members.
    package func isEqual(_ value: Int, to other: borrowing JSONDocument, _ otherValue: Int) -> Bool {
        guard kind(value) == other.kind(otherValue) else { return false }
        switch kind(value) {
        case .null, .no, .yes: return true
        case .string: return string(value).utf8.elementsEqual(other.string(otherValue).utf8)
        case .number: return Self.areEqual(content(value), other.content(otherValue))
        case .array:
            let (mine, others) = (children(value), other.children(otherValue))
            guard mine.count == others.count else { return false }
            for (child, otherChild) in zip(mine, others) where !isEqual(child, to: other, otherChild) { return false }
            return true
        case .object:
            let (mine, others) = (valuesByName(value), other.valuesByName(otherValue))
            guard mine.count == others.count else { return false }
            for (name, child) in mine {
                guard let otherChild = others[name], isEqual(child, to: other, otherChild) else { return false }
            }
            return true
        }
    }

    /// A number that is the same for equal values.
    package func hash(_ value: Int) -> Int {
        var hasher = Hasher()
        hasher.combine(kind(value))
        switch kind(value) {
        case .null, .no, .yes: break
        case .string: for byte in string(value).utf8 { hasher.combine(byte) }
        case .number: hasher.combine(double(value) ?? .infinity)
        case .array: for child in children(value) { hasher.combine(hash(child)) }
        case .object:
            // The sum does not depend on the order of the members.
            var sum = 0
            for (name, child) in valuesByName(value) {
                var member = Hasher()
                member.combine(name)
                member.combine(hash(child))
                sum &+= member.finalize()
            }
            hasher.combine(sum)
        }
        return hasher.finalize()
    }

    /// The values of an object's members; of those with the same name, the first, as for paths.
    package func valuesByName(_ object: Int) -> [[UInt8]: Int] {
        var values: [[UInt8]: Int] = [:]
        for name in members(object) {
            let text = Array(string(name).utf8)
            if values[text] == nil { values[text] = name + 1 }
        }
        return values
    }

    /// Whether two numbers are equal. Integers are compared exactly, others as doubles.
    private static func areEqual(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool {
        if left.elementsEqual(right) { return true }
        guard let value = NumberText.double(left), let other = NumberText.double(right) else { return false }
        // An integer has only one text, except zero.
        return value == other && (value == 0 || !NumberText.isInteger(left) || !NumberText.isInteger(right))
    }
}
