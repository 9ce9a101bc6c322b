import Foundation
import LarderJSONCoding
import Testing

/// Tests of models that call their encoders and decoders directly, in every way that these allow.
@Suite struct ContainerTests {
    /// A value that `body` encodes.
    struct Encoding: Codable {
        var body: (any Encoder) throws -> Void

        init(_ body: @escaping (any Encoder) throws -> Void) { self.body = body }
        init(from decoder: any Decoder) throws { body = { _ in } }
        func encode(to encoder: any Encoder) throws { try body(encoder) }
    }

    struct Name: CodingKey, ExpressibleByStringLiteral {
        var stringValue: String
        var intValue: Int?

        init(stringValue: String) { self.stringValue = stringValue }
        init(intValue: Int) { (stringValue, self.intValue) = ("\(intValue)", intValue) }
        init(stringLiteral text: String) { stringValue = text }
    }

    /// Compares the coders with an ``Encoding`` of `body` at the top level, in an array, in a dictionary and in a
    /// field.
    private func expectSame(
        _ sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping (any Encoder) throws -> Void
    ) {
        struct Around: Codable {
            var before = 1
            var inner: Encoding
            var after = "x"
        }
        let encoding = Encoding(body)
        expectSameWriting(encoding, sourceLocation: sourceLocation)
        expectSameWriting([encoding, encoding], sourceLocation: sourceLocation)
        expectSameWriting(["a": encoding], sourceLocation: sourceLocation)
        expectSameWriting(Around(inner: encoding), sourceLocation: sourceLocation)
    }

    @Test func nestedContainersAreEncodedLikeFoundation() {
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            var list = fields.nestedUnkeyedContainer(forKey: "list")
            try list.encode(1)
            try list.encodeNil()
            var inList = list.nestedContainer(keyedBy: Name.self)
            try inList.encode("x", forKey: "x")
            var deep = list.nestedUnkeyedContainer()
            try deep.encode([true])
            #expect(list.count == 4)
            var inner = fields.nestedContainer(keyedBy: Name.self, forKey: "inner")
            try inner.encodeNil(forKey: "nothing")
            _ = fields.nestedContainer(keyedBy: Name.self, forKey: "empty")
            try fields.encode(2, forKey: "last")
        }
    }

    /// The text cannot be written in order, so Foundation encodes it.
    @Test func interleavedNestedContainersAreEncodedLikeFoundation() {
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            var a = fields.nestedContainer(keyedBy: Name.self, forKey: "a")
            var b = fields.nestedUnkeyedContainer(forKey: "b")
            try a.encode(1, forKey: "x")
            try b.encode(2)
            try a.encode(3, forKey: "y")
            try fields.encode(4, forKey: "c")
            try b.encode(5)
        }
    }

    @Test func superEncodersWriteLikeFoundation() {
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            try fields.encode(1, forKey: "own")
            try [1, 2].encode(to: fields.superEncoder())
            try "x".encode(to: fields.superEncoder(forKey: "other"))
            var list = fields.nestedUnkeyedContainer(forKey: "list")
            try 5.encode(to: list.superEncoder())
            try ["a": 1].encode(to: list.superEncoder())
        }
        // A container that is requested early and used late.
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            let later = fields.superEncoder()
            try fields.encode(1, forKey: "own")
            try "late".encode(to: later)
        }
        // A container that is never used.
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            _ = fields.superEncoder()
            try fields.encode(1, forKey: "own")
        }
    }

    class Base: Codable {
        var id = 1
        var name = "base"
        init() {}
    }
    final class SharedContainer: Base {
        var more = 2.5
        enum Keys: String, CodingKey { case more, name }
        override init() { super.init() }
        required init(from decoder: any Decoder) throws {
            try super.init(from: decoder)
            more = try decoder.container(keyedBy: Keys.self).decode(Double.self, forKey: .more)
        }
        override func encode(to encoder: any Encoder) throws {
            try super.encode(to: encoder)
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(more, forKey: .more)
        }
    }
    final class NestedSuper: Base {
        var more = 2.5
        enum Keys: String, CodingKey { case more }
        override init() { super.init() }
        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            more = try container.decode(Double.self, forKey: .more)
            try super.init(from: container.superDecoder())
        }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(more, forKey: .more)
            try super.encode(to: container.superEncoder())
        }
    }

    @Test func subclassesAreEncodedAndDecodedLikeFoundation() throws {
        expectSameWriting(SharedContainer())
        expectSameWriting(NestedSuper())
        expectSameWriting([SharedContainer() as Base, NestedSuper()])
        let shared = try JSONCoder().decode(SharedContainer.self, from: Array(#"{"more":7,"id":8,"name":"n"}"#.utf8))
        #expect(shared.more == 7 && shared.id == 8 && shared.name == "n")
        let nested = try JSONCoder().decode(
            NestedSuper.self, from: Array(#"{"super":{"id":8,"name":"n"},"more":7}"#.utf8))
        #expect(nested.more == 7 && nested.id == 8 && nested.name == "n")
        expectSameReading(NestedSuper.self, #"{"more":7}"#)
        expectSameReading(NestedSuper.self, #"{"more":7,"super":{"id":"x"}}"#)
    }

    @Test func keysEncodedTwiceAreWrittenLikeFoundation() {
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            try fields.encode(1, forKey: "a")
            try fields.encode(2, forKey: "b")
            try fields.encode([3], forKey: "a")
        }
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            for name in ["é", "x", "e\u{301}", "\"", "\""] { try fields.encode(name, forKey: Name(stringValue: name)) }
        }
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            for index in 0..<200 { try fields.encode(index, forKey: Name(stringValue: "key\(index % 150)")) }
        }
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            for index in 0..<200 { try fields.encode(index, forKey: Name(stringValue: "key\(index)")) }
        }
        // Requesting the same nested container twice returns the same one.
        expectSame { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            var first = fields.nestedContainer(keyedBy: Name.self, forKey: "a")
            try first.encode(1, forKey: "x")
            var second = fields.nestedContainer(keyedBy: Name.self, forKey: "a")
            try second.encode(2, forKey: "y")
        }
    }

    @Test func modelsThatEncodeNothingAreWrittenLikeFoundation() {
        expectSame { _ in }
        expectSame { _ = $0.container(keyedBy: Name.self) }
        expectSame { _ = $0.unkeyedContainer() }
        expectSame { _ = $0.singleValueContainer() }
        expectSame { encoder in
            var one = encoder.singleValueContainer()
            try one.encode(Encoding { _ in })
        }
    }

    @Test func singleValuesOfAllTypesAreEncodedLikeFoundation() {
        func one<Value: Encodable>(_ value: Value) {
            expectSame { encoder in
                var container = encoder.singleValueContainer()
                try container.encode(value)
            }
            expectSame { encoder in
                var container = encoder.unkeyedContainer()
                try container.encode(value)
                try container.encodeNil()
            }
        }
        one(true)
        one("x")
        one(1.5)
        one(Float(0.1))
        one(Int.min)
        one(Int8.min)
        one(Int16.min)
        one(Int32.min)
        one(Int64.min)
        one(Int128.min)
        one(UInt.max)
        one(UInt8.max)
        one(UInt16.max)
        one(UInt32.max)
        one(UInt64.max)
        one(UInt128.max)
        one([1, 2])
        one(["a": [1]])
        one(Int?.none)
        one(Date(timeIntervalSinceReferenceDate: 0.5))
        one(Data([1, 2, 255]))
        one(URL(string: "https://example.org/a?b#c")!)
        one(UUID(uuidString: "00010203-0405-0607-0809-0A0B0C0D0E0F")!)
        one(Decimal(string: "-1234567890.0987654321")!)
        one(Everything.Shelf.lower)
        expectSame { encoder in
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        }
    }

    struct Refusal: Error {}

    /// A value that fails to encode is omitted if the model continues. Foundation's encoder traps in some cases.
    @Test func valuesWhoseEncodingErrorsAreCaughtAreOmitted() throws {
        let failing = Encoding { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            try fields.encode(["x": 1], forKey: "begun")
            throw Refusal()
        }
        func text(_ body: @escaping (any Encoder) throws -> Void) throws -> String {
            String(decoding: try JSONCoder().encode([Encoding(body)]), as: UTF8.self)
        }
        let fields = try text { encoder in
            var fields = encoder.container(keyedBy: Name.self)
            try? fields.encode(failing, forKey: "a")
            try fields.encode(1, forKey: "b")
            try? fields.encode(Double.nan, forKey: "c")
            try? fields.encode([1, .infinity], forKey: "d")
            try fields.encode(2, forKey: "a")
            var list = fields.nestedUnkeyedContainer(forKey: "list")
            try? list.encode(Double.nan)
            try list.encode(3)
            try? list.encode(failing)
            #expect(list.count == 1)
            try? fields.encode(failing, forKey: "é")
            try fields.encode(4, forKey: "é")
        }
        #expect(fields == #"[{"b":1,"a":2,"list":[3],"é":4}]"#)
        let single = try text { encoder in
            var one = encoder.singleValueContainer()
            do { try one.encode(failing) } catch { try one.encode("instead") }
        }
        #expect(single == #"["instead"]"#)
        #expect(throws: Refusal.self) { try text { _ in throw Refusal() } }
        #expect(throws: Refusal.self) { try text { try failing.encode(to: $0) } }
    }

    @Test func encodersHaveTheCodingPathsAndUserInfoOfFoundation() throws {
        let key = CodingUserInfoKey(rawValue: "greeting")!
        var paths: [String] = []
        let probe = Encoding { encoder in
            paths.append(encoder.codingPath.map(\.stringValue).joined(separator: "/"))
            var fields = encoder.container(keyedBy: Name.self)
            var list = fields.nestedUnkeyedContainer(forKey: "list")
            try list.encode(0)
            let inner = list.nestedContainer(keyedBy: Name.self)
            paths.append(inner.codingPath.map(\.stringValue).joined(separator: "/"))
            paths.append(list.codingPath.map(\.stringValue).joined(separator: "/"))
            paths.append(fields.superEncoder().codingPath.map(\.stringValue).joined(separator: "/"))
            try fields.encode(encoder.userInfo[key] as? String, forKey: "said")
        }
        let text = try JSONCoder(userInfo: [key: "hello"]).encode(["a": [1: probe]])
        #expect(String(decoding: text, as: UTF8.self).contains("\"said\":\"hello\""))
        let ours = paths
        paths = []
        _ = try Reference.encode(["a": [1: probe]], userInfo: [key: "hello"])
        #expect(ours == paths)
        #expect(ours[1].hasSuffix("list/Index 1"))
    }

    /// A container that outlives its model has no effect, and the coder continues.
    @Test func containersUsedAfterTheirModelHaveNoEffect() throws {
        var kept: (any UnkeyedEncodingContainer)?
        var keptReader: KeyedDecodingContainer<Name>?
        struct Reading: Decodable {
            nonisolated(unsafe) static var keep: ((any Decoder) throws -> Void)?
            init(from decoder: any Decoder) throws { try Self.keep?(decoder) }
        }
        Reading.keep = { keptReader = try $0.container(keyedBy: Name.self) }
        defer { Reading.keep = nil }
        _ = try JSONCoder().decode(Reading.self, from: Array("{\"a\":1}".utf8))
        for round in 0..<10 {
            _ = try JSONCoder().encode(Encoding { kept = $0.unkeyedContainer() })
            #expect(try JSONCoder().encode([round, 1]) == Array("[\(round),1]".utf8))
            try? kept?.encode("late")
            #expect(kept?.count == 0)
            #expect(try JSONCoder().encode(["a": round]) == Array("{\"a\":\(round)}".utf8))
            #expect(throws: (any Error).self) { try keptReader?.decode(Int.self, forKey: "a") }
            #expect(keptReader?.allKeys.isEmpty == true && keptReader?.contains("a") == false)
        }
    }

    @Test func modelsNestedDeeperThan511LevelsThrow() throws {
        final class Chain: Codable {
            var next: Chain?
            init(_ count: Int) { next = count > 1 ? Chain(count - 1) : nil }
        }
        for depth in [500, 508, 509, 510, 511] {
            expectSameWriting(Chain(depth))
            expectSameWriting([Chain(depth - 1)])
        }
        // Larder's coder has the same limit as Foundation's, and throws the same error.
        for depth in [512, 600] { #expect(throws: EncodingError.self) { try JSONCoder().encode(Chain(depth)) } }
    }
}
