/// Writes JSON texts with or without white space.
package struct JSONFormat: Sendable {
    /// The text for each level before a member or element, the text before these, and the text after a colon.
    package var indent: [UInt8] = []
    package var newline: [UInt8] = []
    package var space: [UInt8] = []

    /// Without white space.
    package static let compact = JSONFormat()

    package init() {}

    /// Returns a text without its white space, and with that of this format. Copies digits and strings as they are.
    /// - Parameters:
    ///   - text: valid JSON.
    ///   - most: the maximum length of the result in bytes.
    /// - Returns: nil if the result would be longer.
    package func write(_ text: UnsafeRawBufferPointer, most: Int) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(min(text.count, most))
        var level = 0
        var position = 0
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }
        while position < text.count {
            let byte = text[position]
            position += 1
            switch byte {
            case 0x20, 0x0A, 0x0D, 0x09: continue
            case UInt8(ascii: "\""):
                let end = Self.stringEnd(text, position)
                result.append(byte)
                result += UnsafeRawBufferPointer(rebasing: text[position..<end])
                position = end
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                result.append(byte)
                while position < text.count, isSpace(text[position]) { position += 1 }
                if position < text.count, text[position] == byte + 2 {
                    result.append(byte + 2)
                    position += 1
                } else {
                    level += 1
                    breakLine(&result, level)
                }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                level -= 1
                breakLine(&result, level)
                result.append(byte)
            case UInt8(ascii: ","):
                result.append(byte)
                breakLine(&result, level)
            case UInt8(ascii: ":"):
                result.append(byte)
                result += space
            default: result.append(byte)
            }
            if result.count > most { return nil }
        }
        return result
    }

    private func breakLine(_ result: inout [UInt8], _ level: Int) {
        result += newline
        guard !indent.isEmpty else { return }
        for _ in 0..<max(0, level) { result += indent }
    }

    /// Returns the position after the closing quote of a string.
    private static func stringEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var position = start
        while position < text.count, text[position] != UInt8(ascii: "\"") {
            position += text[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(position + 1, text.count)
    }
}

/// A JSON value as a text without white space.
package struct JSONText: Equatable, Sendable {
    package let bytes: [UInt8]

    /// Throws if the text is not JSON, or has more than 511 levels. White space around the value is allowed.
    package init(parsing text: UnsafeRawBufferPointer) throws(JSONOutline.Defect) {
        // As the only element of an array, so that an array of such values is always a document.
        do throws(JSONOutline.Defect) { try self.init(onlyElementOf: Self.array([text])) } catch {
            throw JSONOutline.Defect(offset: min(max(0, error.offset - 1), text.count))
        }
    }

    /// The only element of an array. Throws if the text is something else.
    package init(onlyElementOf array: [UInt8]) throws(JSONOutline.Defect) {
        bytes = try array.withUnsafeBufferPointer { (bytes) throws(JSONOutline.Defect) in
            let document = try JSONDocument(parsing: UnsafeRawBufferPointer(bytes))
            let elements = document.children(JSONDocument.root)
            guard document.kind(JSONDocument.root) == .array, elements.count == 1 else {
                throw JSONOutline.Defect(offset: array.count - 1)
            }
            return JSONFormat.compact.write(document.bytes(elements[0]), most: .max) ?? []
        }
    }

    package init?(_ text: String) {
        var text = text
        guard let value = text.withUTF8({ try? JSONText(parsing: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = value
    }

    /// A text that is known to be JSON without white space.
    init(trusted bytes: [UInt8]) { self.bytes = bytes }

    package static func quoted(_ text: String) -> JSONText {
        var writer = TextWriter()
        defer { writer.free() }
        writer.append(quoting: text)
        return JSONText(trusted: [UInt8](writer.bytes))
    }

    package static func array(_ values: [some Collection<UInt8>]) -> [UInt8] {
        [UInt8(ascii: "[")] + values.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
    }

    /// The text of a member of an object.
    package static func member(_ name: String, _ value: [UInt8]) -> [UInt8] {
        quoted(name).bytes + [UInt8(ascii: ":")] + value
    }
}

/// Arithmetic with numbers in JSON texts.
package enum JSONNumber {
    package struct Failure: Error, Equatable {
        package let reason: String
    }

    /// Adds or multiplies two numbers. The result of two integers is an integer; otherwise it is computed with doubles.
    /// Throws if it is too large for 64 bits, or for a double.
    package static func combine(
        _ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>, multiplies: Bool
    ) throws(Failure) -> [UInt8] {
        if NumberText.isInteger(left), NumberText.isInteger(right) {
            guard let left = NumberText.integer(left, Int64.self), let right = NumberText.integer(right, Int64.self)
            else { throw Failure(reason: "numeric overflow") }
            let (result, overflows) =
                multiplies ? left.multipliedReportingOverflow(by: right) : left.addingReportingOverflow(right)
            guard !overflows else { throw Failure(reason: "numeric overflow") }
            return Array("\(result)".utf8)
        }
        guard let left = NumberText.double(left), let right = NumberText.double(right) else {
            throw Failure(reason: "numeric overflow")
        }
        let result = multiplies ? left * right : left + right
        guard result.isFinite else { throw Failure(reason: "result is not a number") }
        // Swift writes 1e+20, RedisJSON 1e20.
        return "\(result)".utf8.filter { $0 != UInt8(ascii: "+") }
    }
}

extension JSONText {
    package var string: String {
        bytes.withUnsafeBytes { JSONDocument($0)?.string(JSONDocument.root) ?? "" }
    }

    package var isString: Bool { bytes.first == UInt8(ascii: "\"") }
    package var isNumber: Bool { bytes.first.map { $0 == UInt8(ascii: "-") || $0 &- 0x30 < 10 } ?? false }
}

extension JSONText {
    package var isNull: Bool { bytes == Array("null".utf8) }

    /// Whether two values are equal, whatever their digits, escapes and order of members.
    package func isEqual(to other: JSONText) -> Bool {
        bytes.withUnsafeBytes { text in
            other.bytes.withUnsafeBytes { otherText in
                guard let document = JSONDocument(text), let other = JSONDocument(otherText) else { return false }
                return document.isEqual(JSONDocument.root, to: other, JSONDocument.root)
            }
        }
    }

    /// Whether two arrays have equal elements, in any order.
    package func hasSameElements(as other: JSONText) -> Bool {
        func hashes(_ text: JSONText) -> [Int]? {
            text.bytes.withUnsafeBytes { bytes in
                guard let document = JSONDocument(bytes), document.kind(JSONDocument.root) == .array else { return nil }
                return document.children(JSONDocument.root).map { document.hash($0) }.sorted()
            }
        }
        guard let mine = hashes(self), let others = hashes(other) else { return false }
        return mine == others
    }
}
