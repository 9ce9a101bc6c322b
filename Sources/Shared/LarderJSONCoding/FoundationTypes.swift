// The only file of this module that imports Foundation. Foundation is needed for its types with a special JSON form,
// and for its coders in rare cases.

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

enum FoundationTypes {
    static let kinds: [ObjectIdentifier: TypeKind] = [
        ObjectIdentifier(Date.self): .date, ObjectIdentifier(Data.self): .data, ObjectIdentifier(URL.self): .url,
        ObjectIdentifier(Decimal.self): .decimal, ObjectIdentifier(UUID.self): .uuid,
    ]
}

// MARK: Writing

extension TextWriter {
    /// Appends data as base64.
    mutating func append<Value>(data value: Value) {
        append(quoting: unsafeBitCast(value, to: Data.self).base64EncodedString())
    }

    mutating func append<Value>(url value: Value) { append(quoting: unsafeBitCast(value, to: URL.self).absoluteString) }

    mutating func append<Value>(uuid value: Value) {
        reserve(38)
        append(UInt8(ascii: "\""))
        withUnsafeBytes(of: unsafeBitCast(value, to: UUID.self).uuid) { bytes in
            for (index, byte) in bytes.enumerated() {
                if index == 4 || index == 6 || index == 8 || index == 10 { append(UInt8(ascii: "-")) }
                append(HexDigits.upper(byte >> 4))
                append(HexDigits.upper(byte & 15))
            }
        }
        append(UInt8(ascii: "\""))
    }
}

extension EncodingState {
    /// Writes a date as seconds since 2001.
    func encode<Value>(date value: Value, _ step: @autoclosure () -> PathStep?) throws {
        let seconds = unsafeBitCast(value, to: Date.self).timeIntervalSinceReferenceDate
        guard seconds.isFinite else { throw notFinite(seconds, of: Date.self, step()) }
        core.pointee.text.append(seconds)
    }

    func encode<Value>(decimal value: Value, _ step: @autoclosure () -> PathStep?) throws {
        let decimal = unsafeBitCast(value, to: Decimal.self)
        guard decimal.isFinite else { throw notFinite(decimal, step()) }
        core.pointee.text.append(number: decimal.description)
    }
}

/// Uses Foundation to encode a model that is too deep for ``EncodingState``, or that does not write its text in order.
func foundationEncode<Value: Encodable>(_ value: Value, userInfo: [CodingUserInfoKey: any Sendable]) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    encoder.userInfo = userInfo
    let text = try encoder.encode(value)
    try text.withUnsafeBytes { try FoundationText.refuseNaN(in: $0) }
    return Array(text)
}

/// Checks the text that Foundation's encoder returns.
package enum FoundationText {
    /// - Throws: an error if the text contains `NaN` as a number. Foundation writes `NaN` for a `Decimal` that is not a
    ///   number, but no decoder accepts it.
    package static func refuseNaN(in text: UnsafeRawBufferPointer) throws {
        guard hasNaN(text) else { return }
        throw EncodingError.invalidValue(Decimal.nan, NotFinite.context(Decimal.self, []))
    }

    /// Whether the text contains a `NaN`. Outside strings, an `N` can only be part of `NaN`.
    private static func hasNaN(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.contains(UInt8(ascii: "N")) else { return false }
        var isInString = false
        var index = 0
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: "\\") where isInString: index += 1
            case UInt8(ascii: "N") where !isInString: return true
            default: break
            }
            index += 1
        }
        return false
    }
}

// MARK: Reading

extension DecodingState {
    func date(_ node: Int, _ place: Place, _ step: @autoclosure () -> PathStep?) throws -> Date {
        if isNull(node) { throw nullFound(Date.self, place, step()) }
        return Date(timeIntervalSinceReferenceDate: try real(node, Double.self, place, step()))
    }

    func data(_ node: Int, _ place: Place, _ step: @autoclosure () -> PathStep?) throws -> Data {
        if isNull(node) { throw nullFound(Data.self, place, step()) }
        guard let data = Data(base64Encoded: try string(node, place, step())) else {
            throw corrupted("base64 was expected", place, step())
        }
        // Count the object, and twice the bytes: Foundation may round the size of the allocation up to a power of two.
        if data.count > 14 { core.pointee.note(made: 4 &* Made.objectBytes &+ 2 &* data.count) }
        return data
    }

    func url(_ node: Int, _ place: Place, _ step: @autoclosure () -> PathStep?) throws -> URL {
        if isNull(node) { throw nullFound(URL.self, place, step()) }
        let text = try string(node, place, step())
        guard let url = URL(string: text) else { throw corrupted("a URL was expected", place, step()) }
        // A URL has its text in several forms, and the positions of its parts, in objects of its own.
        core.pointee.note(made: 1_024 &+ 3 &* text.utf8.count)
        return url
    }

    func decimal(_ node: Int, _ place: Place, _ step: @autoclosure () -> PathStep?) throws -> Decimal {
        let text = try numberText(node, Decimal.self, place, step())
        guard let value = try? JSONDecoder().decode(Decimal.self, from: Data(text)) else {
            throw corrupted("the number does not fit in a Decimal", place, step())
        }
        return value
    }

    func uuid(_ node: Int, _ place: Place, _ step: @autoclosure () -> PathStep?) throws -> UUID {
        let found = core.pointee.node(node)
        guard found.kind == .string else { throw mismatch(String.self, node, place, step()) }
        if let uuid = Self.uuid(core.pointee.bytes(found)) ?? UUID(uuidString: core.pointee.string(node)) {
            return uuid
        }
        throw corrupted("a UUID was expected", place, step())
    }

    /// Parses a UUID in the usual form with 36 characters; nil for other forms.
    private static func uuid(_ text: UnsafeBufferPointer<UInt8>) -> UUID? {
        guard text.count == 36 else { return nil }
        var uuid: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        let isUsual = withUnsafeMutableBytes(of: &uuid) { bytes in
            var index = 0
            for byte in 0..<16 {
                if byte == 4 || byte == 6 || byte == 8 || byte == 10 {
                    guard text[index] == UInt8(ascii: "-") else { return false }
                    index &+= 1
                }
                guard let high = HexDigits.value(text[index]), let low = HexDigits.value(text[index &+ 1]) else {
                    return false
                }
                bytes[byte] = high << 4 | low
                index &+= 2
            }
            return true
        }
        return isUsual ? UUID(uuid: uuid) : nil
    }
}

/// Parses an integer that is written with a fraction or an exponent, as Foundation does. Returns nil if the value is
/// not an integer or does not fit.
func foundationInteger<Value: FixedWidthInteger & Decodable>(_ type: Value.Type, _ text: UnsafeRawBufferPointer)
    -> Value?
{
    try? JSONDecoder().decode(type, from: Data(text))
}

/// Uses Foundation to decode a text that ``DocumentIndex`` rejects: Foundation accepts some texts that are not UTF-8 or
/// not strict JSON. A text that nests too deeply is rejected here, because Foundation may trap (Swift 6.3).
func foundationDecode<Value: Decodable>(
    _ type: Value.Type, _ text: UnsafeRawBufferPointer, userInfo: [CodingUserInfoKey: any Sendable]
) throws -> Value {
    let data = Data(text)
    if UnreadableDepth.isReached(in: text) || text.contains(0) && UnreadableDepth.isReached(inWideText: data) {
        throw DecodingError.dataCorrupted(
            DecodingError.Context(
                codingPath: [],
                debugDescription: "the text nests more than \(DocumentIndex.depthMax) objects and arrays"))
    }
    let decoder = JSONDecoder()
    decoder.userInfo = userInfo
    return try decoder.decode(type, from: data)
}

/// Checks whether a text, which may be malformed, nests too deeply for any JSON reader.
private enum UnreadableDepth {
    /// Whether more than 512 brackets are open at some point. Brackets in strings are not counted.
    static func isReached(in text: UnsafeRawBufferPointer) -> Bool {
        var depth = 0
        var index = 0
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > DocumentIndex.depthMax { return true }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: "\""):
                index += 1
                while index < text.count, text[index] != UInt8(ascii: "\"") {
                    index += text[index] == UInt8(ascii: "\\") ? 2 : 1
                }
            default: break
            }
            index += 1
        }
        return false
    }

    /// Like ``isReached(in:)``, for a text that may be UTF-16 or UTF-32.
    static func isReached(inWideText data: Data) -> Bool {
        let encodings: [String.Encoding] = [
            .utf16BigEndian, .utf16LittleEndian, .utf32BigEndian, .utf32LittleEndian,
        ]
        return encodings.contains { encoding in
            guard var text = String(data: data, encoding: encoding) else { return false }
            return text.withUTF8 { isReached(in: UnsafeRawBufferPointer($0)) }
        }
    }
}
