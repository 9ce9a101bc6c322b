import Foundation
import LarderJSONCoding
import Testing

/// Decodes texts of all kinds as several types, and expects the same value or error as from Foundation.
@Suite struct MalformedTests {
    struct One: Codable { var a: Int }
    struct Inner: Codable { var b: [UInt8] }
    struct Outer: Codable {
        var inner: Inner
        var list: [Inner]
        var table: [String: Inner]
        var form: Everything.Form?
    }

    private func compare(_ text: [UInt8]) {
        expectSameReading(One.self, text)
        expectSameReading(Int.self, text)
        expectSameReading(Double.self, text)
        expectSameReading(String.self, text)
        expectSameReading([Int].self, text)
        expectSameReading([String].self, text)
        expectSameReading([String: Double].self, text)
        expectSameReading(Bool?.self, text)
    }

    @Test(arguments: [
        "", " ", "null", "true", "false", "1", "-1", "\"\"", "[]", "{}", "[[]]", "[{}]", "nul", "nulll", "True", "tru",
        "fals",
        "falsee", "[1", "[1,", "[,1]", "[1,]", "[1,,]", "[1 2]", "[1;2]", "]", "}", "[}", "{]", "[1]]", "{\"a\":1}}",
        "{\"a\"}",
        "{\"a\":}", "{\"a\":1,}", "{\"a\":1,,}", "{,}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{a:1}", "{'a':1}", "{1:1}",
        "{null:1}", "{\"a\":1,\"a\":2}", "{\"a\":null,\"a\":2}", "{\"\\u0061\":1}", "{\"\\u0061\":1,\"a\":2}", "//\n1",
        "/**/1", "1 //", "#", "1x", "1,", "[1]x", "[1] []", "\u{feff}1", "\u{feff}", "1\u{feff}", " \t\r\n1\n",
        "\u{a0}1",
        "\u{b}1", "{\"a\":1.5}", "{\"a\":\"1\"}", "{\"a\":[1]}", "{\"a\":{}}", "{\"a\":null}", "{\"b\":1}", "{\"A\":1}",
        "{\"a\":1,\"b\":01}", "{\"a\":1,\"b\":-}", "{\"a\":1,\"b\":1.}", "{\"a\":1,\"b\":\"\\x\"}",
        "{\"a\":1,\"b\":\"\n\"}",
        "{\"a\":1,\"b\":\"\\ud800\"}", "{\"a\":1,\"b\":\"\\u12\"}", "{\"a\":1,\"b\":tru}", "[NaN]", "[Infinity]",
        "[-Infinity]",
        "[+1]", "[0x1]", "[1_0]", "[.5]", "[5.]", "[1e]", "[1e+]", "[1e-]", "[1E5]", "[01]", "[-01]", "[-]", "[--1]",
        "[1-1]",
        "[1.2.3]", "[1e2e3]", "[1e2.3]", "[0]", "[-0]", "[00]", "[0.0]", "[0e1]", "[true,null]", "[\"a\",null]",
        "[1,\"a\"]",
    ])
    func malformedTextsAreDecodedLikeFoundation(_ text: String) { compare(Array(text.utf8)) }

    @Test(arguments: [
        "1e400", "-1e400", "1e-400", "-1e-400", "4.9e-324", "2e-324", "2.5e-324", "1.7976931348623157e308",
        "1.7976931348623159e308", "1e39", "3.4028235e38", "3.4028236e38", "1e-46", "123456789012345678901234567890",
        "0.1",
        "255", "256", "-1", "-0", "-0.0", "255.0", "2.55e2", "25500e-2", "1.5e1", "127", "128", "-128", "-129", "32767",
        "65535",
        "65536", "2147483648", "4294967295", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "-9223372036854775809", "18446744073709551615", "18446744073709551616", "9007199254740993.0",
        "9007199254740993.5",
        "9223372036854775807.0", "1e18", "1e19", "9.223372036854775807e18", "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105728", "340282366920938463463374607431768211455", "1e38",
        "0.000000000000000000000000000000000000000000001e45", "1e99999999999999999999", "1e-99999999999999999999",
        "0e99999999999999999999", "00000000000000000000000000000001", "1.0000000000000000000000000000000000000001",
        "10000000000000000000000000000000000000000e-40", "100000000000000000000000000000000000000000000000000000000000",
    ])
    func numbersAtTheirLimitsAreDecodedLikeFoundation(_ text: String) {
        let text = Array("[\(text)]".utf8)
        expectSameReading([Double].self, text)
        expectSameReading([Float].self, text)
        expectSameReading([Int].self, text)
        expectSameReading([Int8].self, text)
        expectSameReading([Int16].self, text)
        expectSameReading([Int32].self, text)
        expectSameReading([Int64].self, text)
        expectSameReading([Int128].self, text)
        expectSameReading([UInt].self, text)
        expectSameReading([UInt8].self, text)
        expectSameReading([UInt16].self, text)
        expectSameReading([UInt32].self, text)
        expectSameReading([UInt64].self, text)
        expectSameReading([UInt128].self, text)
        expectSameReading([Decimal].self, text)
        expectSameReading([Date].self, text)
    }

    @Test func validAndInvalidStringsAreDecodedLikeFoundation() {
        let contents: [[UInt8]] =
            [
                "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\u0041", "\\ud83d\\ud83d", "\\u0000",
                "\\u00e9",
                "\\u00E9", "\\U0041", "\\u00G1", "\\u004", "\\", "\\a", "\\'", "\\/\\b\\f\\n\\r\\t\\\"\\\\", "\u{7f}",
                "\t", "\u{0}",
                "\u{1f}", "\u{2028}", "12345678\\n", "1234567\\n8", "123456789012345\u{1}", "é", "一本书", "👩‍👩‍👧",
                "a\\u0301", "\\uFFFF\\uFFFE", "abcdefgh\u{e9}",
            ].map { Array($0.utf8) } + [
                [0xFF], [0xC0, 0x80], [0xC3], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80],
                [0xF0, 0x80, 0x80, 0x80],
                [0x80], [0xE0, 0x80, 0x80], [0x61, 0xFE, 0x61], [0xEF, 0xBF, 0xBF], [0xF4, 0x8F, 0xBF, 0xBF],
            ]
        for content in contents {
            let quoted = [0x22] + content + [0x22]
            expectSameReading(String.self, quoted)
            expectSameReading([String].self, [0x5B] + quoted + [0x5D])
            expectSameReading([String: Int].self, [0x7B] + quoted + Array(":1}".utf8))
            // Here the string is in a field or a name that the model lacks, so it is not decoded.
            expectSameReading(One.self, Array("{\"a\":1,\"b\":".utf8) + quoted + [0x7D])
            expectSameReading(One.self, [0x7B] + quoted + Array(":2,\"a\":1}".utf8))
        }
    }

    @Test func otherTextEncodingsAreDecodedLikeFoundation() {
        let text = "{\"a\":1,\"é\":\"一\"}"
        let little = text.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
        let big = text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
        let wide = text.unicodeScalars.flatMap { [UInt8($0.value & 255), UInt8($0.value >> 8 & 255), 0, 0] }
        for bytes in [
            little, big, wide, [0xFF, 0xFE] + little, [0xFE, 0xFF] + big, [0xFF, 0xFE, 0, 0] + wide,
            Array(wide.reversed()),
            [0, 0, 0xFE, 0xFF]
                + text.unicodeScalars.flatMap { [0, 0, UInt8($0.value >> 8 & 255), UInt8($0.value & 255)] },
            [0xEF, 0xBB, 0xBF] + Array(text.utf8), [0xFF, 0xFE], [0xFE, 0xFF], [0xEF, 0xBB, 0xBF], [0], [0, 0],
            [0x31, 0],
            [0, 0x31], [0x31, 0, 0, 0], [0, 0, 0, 0x31], [0x31, 0, 0x32, 0], [0xFF, 0xFE, 0, 0xD8], [0x31, 0, 0x20],
        ] as [[UInt8]] {
            compare(bytes)
        }
    }

    @Test func deeplyNestedTextsAreDecodedLikeFoundation() {
        struct Unread: Codable {
            init(from decoder: any Decoder) throws { _ = try decoder.singleValueContainer() }
            func encode(to encoder: any Encoder) throws {}
        }
        for count in [1, 511, 512, 513, 514, 100_000] {
            expectSameReading(
                Unread.self, String(repeating: "[", count: count) + String(repeating: "]", count: count))
            expectSameReading(
                Unread.self, String(repeating: "{\"a\":", count: count) + "1" + String(repeating: "}", count: count))
            // Foundation traps on a text of only 513 brackets.
            for broken in [String(repeating: "[", count: count), String(repeating: "[1,],[", count: count)] {
                #expect(throws: DecodingError.self) { try JSONCoder().decode(Unread.self, from: Array(broken.utf8)) }
                let wide: [UInt8] = broken.utf8.flatMap { [$0, 0] }
                #expect(throws: DecodingError.self) { try JSONCoder().decode(Unread.self, from: wide) }
            }
        }
    }

    /// The type and the place of an error in nested models.
    @Test func errorsHaveTheirCodingPath() {
        for (good, bads) in [
            ("[1,2]", ["[1,256]", "[1,null]", "[\"x\"]", "{}", "null", "[-1]", "[1.5]", "[true]", "[[1]]"])
        ] {
            for bad in bads {
                for position in 0..<4 {
                    let parts = (0..<4).map { $0 == position ? bad : good }
                    expectSameReading(
                        Outer.self,
                        """
                        {"inner":{"b":\(parts[0])},"list":[{"b":[]},{"b":\(parts[1])}],"table":{"k":{"b":\(parts[2])}},
                        "form":{"nested":{"_0":[{"none":{}},{"nested":{"_0":\(position == 3 ? bad : "[]")}}]}}}
                        """)
                }
            }
        }
        expectSameReading(Outer.self, "{\"inner\":{},\"list\":[],\"table\":{}}")
        expectSameReading(Outer.self, "{\"inner\":{\"b\":[]},\"list\":[{\"b\":[]},{}],\"table\":{}}")
        expectSameReading(Outer.self, "{\"inner\":{\"b\":[]},\"list\":[],\"table\":{\"é\":{}}}")
        expectSameReading(Outer.self, "{\"inner\":{\"b\":[]},\"list\":[],\"table\":{},\"form\":{}}")
        expectSameReading(
            Outer.self, "{\"inner\":{\"b\":[]},\"list\":[],\"table\":{},\"form\":{\"circle\":{\"radius\":\"x\"}}}")
        expectSameReading(
            Outer.self, "{\"inner\":{\"b\":[]},\"list\":[],\"table\":{},\"form\":{\"named\":{\"_0\":\"x\"}}}")
        expectSameReading(Outer.self, "{\"inner\":{\"b\":[]},\"list\":[],\"table\":{},\"form\":{\"named\":7}}")
    }

    @Test(arguments: [
        "\"AQI=\"", "\"AQI\"", "\"A Q=\"", "\"\"", "[1,2]", "null", "1", "{}", "\"http://a b\"",
        "\"https://x/\\u00e9\"", "\"x\"",
        "\"E621E1F8-C36C-495A-93FC-0C247A3E6E5F\"", "\"e621e1f8-c36c-495a-93fc-0c247a3e6e5f\"",
        "\"E621E1F8C36C495A93FC0C247A3E6E5F\"", "\"E621E1F8-C36C-495A-93FC-0C247A3E6E5G\"", "1.5", "1e400", "true",
        "{\"relative\":\"x\"}", "1.10", "123456789.123456789123456789", "\"E621E1F8-C36C-495A-93FC_0C247A3E6E5F\"",
        "\"E621E1F8-C36C-495A-93FC-0C247A3E6E5F \"", "\"+621E1F8-C36C-495A-93FC-0C247A3E6E5F\"",
    ])
    func typesOfFoundationAreDecodedLikeFoundation(_ text: String) {
        for text in [text, "[\(text)]", "{\"a\":\(text)}"] {
            expectSameReading(Data.self, text)
            expectSameReading(URL.self, text)
            expectSameReading(UUID.self, text)
            expectSameReading(Decimal.self, text)
            expectSameReading(Date.self, text)
            expectSameReading([Data].self, text)
            expectSameReading([URL?].self, text)
            expectSameReading([String: UUID].self, text)
            expectSameReading([Decimal].self, text)
            expectSameReading([String: Date?].self, text)
        }
    }

    @Test(arguments: [
        "{}", "[]", "{\"1\":1}", "{\"x\":1}", "[1,2]", "[1]", "[1,2,3,4]", "[\"a\",1]",
        "{\"upper\":1}",
        "{\"neither\":1}", "{\"a\":null}", "null", "{\"K\":1,\"\u{212A}\":2}", "{\"\u{212A}\":2,\"K\":1}",
        "{\"é\":1,\"e\u{301}\":2}", "{\"e\u{301}\":2,\"é\":1}", "{\"\":1}", "{\"a\":1,\"a\":\"x\"}",
    ])
    func dictionariesOfAllKeyTypesAreDecodedLikeFoundation(_ text: String) {
        func sorted<Key: Hashable & Codable, Value: Codable>(_ type: [Key: Value].Type) {
            let ours = outcome { try JSONCoder().decode(type, from: Array(text.utf8)).map { "\($0)" }.sorted() }
            let theirs = outcome { try Reference.decode(type, Array(text.utf8)).map { "\($0)" }.sorted() }
            #expect(ours == theirs, "\(type) from \(text)")
        }
        sorted([String: Int].self)
        sorted([Int: Int].self)
        sorted([Double: Int].self)
        sorted([Everything.Shelf: Int].self)
        sorted([String: Int?].self)
    }

    @Test func keysThatSwiftConsidersEqualAreDecodedLikeFoundation() {
        struct Accents: Codable {
            var first: Int
            var kelvin: Int?
            enum CodingKeys: String, CodingKey {
                case first = "e\u{301}"
                case kelvin = "\u{212A}"
            }
        }
        expectSameReading(Accents.self, "{\"e\u{301}\":1}")
        expectSameReading(Accents.self, "{\"é\":1}")
        expectSameReading(Accents.self, "{\"x\":1,\"\\u00e9\":2,\"K\":3}")
        expectSameReading(Accents.self, "{\"é\":1,\"e\u{301}\":2,\"K\":3,\"\u{212A}\":4}")
        expectSameReading(Accents.self, "{\"e\":1}")
    }
}
