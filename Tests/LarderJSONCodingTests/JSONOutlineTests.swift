import Foundation
import LarderJSONCoding
import LarderTestSupport
import Testing

/// Tests that JSON texts are recognized, and members of objects are found, without decoding values.
@Suite struct JSONOutlineTests {
    private static func isValue(_ text: String) -> Bool { isValue(Array(text.utf8)) }
    private static func isValue(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { JSONOutline.isValue($0) } }

    @Test(arguments: [
        "null", "true", "false", "0", "-1", "1.5e-7", "1E999", "\"\"", "\"a\\u00e9\\n\"", "[]", "{}",
        "[1,[2,{\"a\":[]}],3]",
        "{\"a\":1,\"b\":{\"c\":null}}", "[ 1 , 2 ]", "\"\\ud83d\\ude00\"", "{\"a\" : [ ] }",
    ])
    func validTextsAreValuesAndTheirPrefixesAreNot(text: String) {
        #expect(Self.isValue(text), "\(text)")
        // No prefix of a text is a JSON value, except for numbers.
        for count in 0..<text.utf8.count where !"0123456789".contains(text.last ?? " ") {
            #expect(!Self.isValue(Array(text.utf8.prefix(count))), "\(text.prefix(count))")
        }
    }

    @Test(arguments: [
        "", " ", "1 ", " 1", "nul", "01", "1.", "-", "+1", "[", "]", "[1,]", "[,1]", "[1 2]", "[1}", "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}", "{a:1}", "{\"a\":1", "\"", "\"\\x\"", "\"\\ud800\"", "\"\n\"", "[]]", "1 1", "[[]", "NaN",
        "{1:2}",
        "[\"a\":1]", "{\"a\",1}",
    ])
    func malformedTextsAreNotValues(text: String) { #expect(!Self.isValue(text), "\(text)") }

    @Test func bytesThatAreNotUTF8AreNotJSON() {
        #expect(!Self.isValue([UInt8(ascii: "\""), 0xFF, UInt8(ascii: "\"")]))
        #expect(!Self.isValue([0]))
    }

    @Test func textsNestedDeeperThan512LevelsAreNotValues() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(Self.isValue(nested(512)))
        #expect(!Self.isValue(nested(513)))
        #expect(Self.isValue("[" + nested(511) + "," + nested(511) + "]"))
    }

    @Test func membersOfObjectsAndElementsOfArraysAreFound() throws {
        let text = Array(#" {"a" : [1, "x\n"] ,"b\u0041":"two\t\"","c":{"d":0}} "#.utf8)
        try text.withUnsafeBytes { bytes in
            let members = try JSONOutline.members(bytes)
            #expect(members.map(\.name) == ["a", "bA", "c"])
            #expect(
                members.map { String(decoding: bytes[$0.place], as: UTF8.self) }
                    == [#"[1, "x\n"]"#, #""two\t\"""#, #"{"d":0}"#])
            #expect(JSONOutline.string(bytes, members[1].place) == "two\t\"")
            #expect(JSONOutline.string(bytes, members[0].place) == nil)
            let elements = try #require(JSONOutline.elements(bytes, members[0].place))
            #expect(elements.map { String(decoding: bytes[$0], as: UTF8.self) } == ["1", #""x\n""#])
            #expect(JSONOutline.elements(bytes, members[2].place) == nil)
        }
    }

    @Test(arguments: [
        ("", 0), ("[]", 0), ("{", 0), ("{\"a\"", 3), ("{\"a\":tru}", 5), ("{\"a\":1} x", 8), ("{\"a\":1;}", 6),
        ("{a:1}", 1),
    ])
    func errorsHaveTheirOffset(text: String, offset: Int) {
        _ = Array(text.utf8).withUnsafeBytes { bytes in
            #expect(throws: JSONOutline.Defect(offset: offset), "\(text)") { try JSONOutline.members(bytes) }
        }
    }

    private static func hasLongExponent(_ text: [UInt8]) -> Bool {
        text.indices.contains { index in
            text[index] | 0x20 == UInt8(ascii: "e")
                && text[(index + 1)...].prefix { (48...57).contains($0) || $0 == 43 || $0 == 45 }.count >= 3
        }
    }

    /// Foundation accepts and rejects the same randomly damaged texts.
    @Test func randomTextsAreAcceptedOrRejectedLikeFoundation() throws {
        var random = SeededGenerator(seed: testSeed())
        let letters = Array("{}[],:\"\\ 01-.eE+ntrufalsx\u{e9}\u{0}".utf8)
        var found = 0
        for _ in 0..<20_000 {
            var text = Array(#"{"a":[1,-2.5e3,"xé\n"],"b":{"c":null,"d":[true,false]}}"#.utf8)
            for _ in 0..<random.below(3) { text[random.below(text.count)] = letters[random.below(letters.count)] }
            if random.oneIn(4) { text.removeSubrange(random.below(text.count)..<text.count) }
            let expected = (try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)) != nil
            // Foundation also accepts spaces around a value, and zeros after numbers that overflow; Larder's decoder
            // does not.
            guard text.first.map({ $0 > 0x20 }) ?? false, text.last.map({ $0 > 0x20 }) ?? false else { continue }
            if expected { found += 1 }
            // Foundation also rejects numbers beyond a Double, which the grammar allows.
            if !expected, Self.hasLongExponent(text) { continue }
            // Foundation accepts an object whose last member is followed by a comma, which the grammar does not allow.
            if expected, String(decoding: text, as: UTF8.self).contains(",}"), !Self.isValue(text) { continue }
            #expect(Self.isValue(text) == expected, "\(String(decoding: text, as: UTF8.self))")
        }
        #expect(found > 1000)
        #expect(!Self.isValue(Array(#"{"a":1,}"#.utf8)))
    }
}
