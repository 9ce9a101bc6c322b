import Foundation
import LarderJSONCoding
import Testing

/// The configuration of Foundation's coders with which Larder's coders are compared.
enum Reference {
    static func encode(_ value: some Encodable, userInfo: [CodingUserInfoKey: any Sendable] = [:]) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        encoder.userInfo = userInfo
        return Array(try encoder.encode(value))
    }

    static func decode<Value: Decodable>(_ type: Value.Type, _ text: [UInt8]) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text))
    }
}

/// Sorts the fields of each object in a JSON text by the bytes of their names, because Foundation's order is random.
/// Everything else stays unchanged. Does not use the coder under test.
struct SortedJSON {
    private let text: [UInt8]
    private var index = 0

    static func of(_ text: [UInt8]) -> String {
        var sorter = SortedJSON(text: text)
        let value = sorter.value()
        return String(decoding: value + text[sorter.index...], as: UTF8.self)
    }

    private init(text: [UInt8]) { self.text = text }

    private mutating func value() -> [UInt8] {
        guard index < text.count else { return Array("<end>".utf8) }
        let first = text[index]
        if first == UInt8(ascii: "\"") { return string() }
        if first == UInt8(ascii: "{") {
            return list(UInt8(ascii: "}")) { sorter in
                let name = sorter.string()
                sorter.index += 1
                return name + [UInt8(ascii: ":")] + sorter.value()
            }
        }
        if first == UInt8(ascii: "[") { return list(UInt8(ascii: "]")) { $0.value() } }
        let start = index
        while index < text.count, !",]}".utf8.contains(text[index]) { index += 1 }
        return Array(text[start..<index])
    }

    private mutating func list(_ end: UInt8, _ item: (inout SortedJSON) -> [UInt8]) -> [UInt8] {
        let first = text[index]
        var items: [[UInt8]] = []
        index += 1
        while index < text.count, text[index] != end {
            items.append(item(&self))
            if index < text.count, text[index] == UInt8(ascii: ",") { index += 1 }
        }
        index += 1
        if end == UInt8(ascii: "}") { items.sort { $0.lexicographicallyPrecedes($1) } }
        return [first] + items.joined(separator: [UInt8(ascii: ",")]) + [end]
    }

    private mutating func string() -> [UInt8] {
        let start = index
        index += 1
        while index < text.count, text[index] != UInt8(ascii: "\"") {
            index += text[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        index += 1
        return Array(text[start..<min(index, text.count)])
    }
}

/// The outcome of a coder as text that can be compared: the value, or an error with its type and path.
func outcome<Value>(_ body: () throws -> Value) -> String {
    func path(_ context: [any CodingKey]) -> String {
        context.map { "\($0.stringValue)/\($0.intValue.map(String.init) ?? "-")" }.joined(separator: ".")
    }
    do {
        return "value \(try body())"
    } catch DecodingError.typeMismatch(let type, let context) {
        return "typeMismatch \(type) at \(path(context.codingPath))"
    } catch DecodingError.valueNotFound(let type, let context) {
        return "valueNotFound \(type) at \(path(context.codingPath))"
    } catch DecodingError.keyNotFound(let key, let context) {
        return "keyNotFound \(key.stringValue) \(type(of: key)) at \(path(context.codingPath))"
    } catch DecodingError.dataCorrupted {
        // If a number does not fit, Foundation's error has no path, but that of Larder's coder has one.
        return "dataCorrupted"
    } catch EncodingError.invalidValue(let value, let context) {
        return "invalidValue \(value) at \(path(context.codingPath))"
    } catch  where "\(type(of: error))" == "JSONError" {
        // At the top level, Foundation converts this error to a DecodingError.
        return "dataCorrupted"
    } catch {
        return "\(type(of: error)) \(error)"
    }
}

/// Decodes a text with both coders, and compares the outcomes.
@discardableResult
func expectSameReading<Value: Decodable>(
    _ type: Value.Type, _ text: [UInt8], _ coder: JSONCoder = JSONCoder(),
    sourceLocation: SourceLocation = #_sourceLocation
) -> Bool {
    let ours = outcome { try coder.decode(type, from: text) }
    let theirs = outcome { try Reference.decode(type, text) }
    #expect(
        ours == theirs, "\(type) from \(String(decoding: text.prefix(300), as: UTF8.self))",
        sourceLocation: sourceLocation)
    return ours == theirs
}

@discardableResult
func expectSameReading<Value: Decodable>(
    _ type: Value.Type, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
) -> Bool {
    expectSameReading(type, Array(text.utf8), sourceLocation: sourceLocation)
}

/// Encodes a value with both coders. Expects the same bytes, except for the order of fields. Also expects that each
/// decoder reads the output of the other encoder.
func expectSameWriting<Value: Codable>(
    _ value: Value, userInfo: [CodingUserInfoKey: any Sendable] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let coder = JSONCoder(userInfo: userInfo)
    let ours = outcome { SortedJSON.of(try coder.encode(value)) }
    let theirs = outcome { SortedJSON.of(try Reference.encode(value, userInfo: userInfo)) }
    #expect(ours == theirs, sourceLocation: sourceLocation)
}

/// Like ``expectSameWriting(_:userInfo:sourceLocation:)``, and expects that each decoder reads the other's output as
/// the same value.
func expectSameRoundTrip<Value: Codable & Equatable>(
    _ value: Value, sourceLocation: SourceLocation = #_sourceLocation
) {
    expectSameWriting(value, sourceLocation: sourceLocation)
    do {
        let ours = try JSONCoder().encode(value)
        #expect(try Reference.decode(Value.self, ours) == value, sourceLocation: sourceLocation)
        #expect(try JSONCoder().decode(Value.self, from: ours) == value, sourceLocation: sourceLocation)
        let theirs = try Reference.encode(value)
        #expect(try JSONCoder().decode(Value.self, from: theirs) == value, sourceLocation: sourceLocation)
    } catch {
        Issue.record(error, sourceLocation: sourceLocation)
    }
}
