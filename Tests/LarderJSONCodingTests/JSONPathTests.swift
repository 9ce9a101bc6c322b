import LarderJSONCoding
import LarderTestSupport
import Testing

/// Tests which values JSON paths find. The expected results are those of RedisJSON 2.8.
@Suite struct JSONPathTests {
    private static let document = #"""
        {"store":{"book":[{"title":"A","price":8.95,"isbn":"1"},{"title":"B","price":12},{"title":"C","price":8,"tags":["x","y"]}],
        "bicycle":{"price":20,"color":"red"}},"price":5,"né":1,"a b":2,"list":[0,1,2,3,4],"no":null}
        """#

    /// Returns the texts of the values of a path.
    static func find(_ path: String, in text: String) throws -> [String] {
        let path = Array(path.utf8)
        return try Array(text.utf8).withUnsafeBytes { text in
            let document = try JSONDocument(parsing: text)
            let found = try path.withUnsafeBytes { try JSONPath($0).find(in: document) }
            var texts: [String] = []
            for value in found { texts.append(String(decoding: document.bytes(value), as: UTF8.self)) }
            return texts
        }
    }

    @Test(
        arguments: [
            ("$.price", ["5"]), (".price", ["5"]), ("price", ["5"]), ("$['price']", ["5"]), ("[\"price\"]", ["5"]),
            ("$.né", ["1"]), ("$['a b']", ["2"]), ("$.nothing", []), ("$.price.x", []),
            ("$.store.book[0].title", ["\"A\""]), ("$.store.book[-1].title", ["\"C\""]),
            (".store.book[1].price", ["12"]),
            ("$.store.book[0,2].title", ["\"A\"", "\"C\""]), ("$.store.book[*].title", ["\"A\"", "\"B\"", "\"C\""]),
            ("$.store.*.price", ["20"]), ("$.store['bicycle'].color", ["\"red\""]), ("$.list[1:3]", ["1", "2"]),
            ("$.list[:2]", ["0", "1"]), ("$.list[3:]", ["3", "4"]), ("$.list[::2]", ["0", "2", "4"]),
            ("$.list[-2:]", ["3", "4"]), ("$.list[-9]", ["0"]), ("$.list[9]", []), ("$.list[3:1]", []),
            ("$..price", ["5", "8.95", "12", "8", "20"]), ("$..tags[0]", ["\"x\""]), ("$..isbn", ["\"1\""]),
            ("$.store.book[?(@.price<10)].title", ["\"A\"", "\"C\""]), ("$.store.book[?(@.isbn)].title", ["\"A\""]),
            ("$.store.book[?(@.price>8 && @.price<=12)].title", ["\"A\"", "\"B\""]),
            ("$.store.book[?(@.title==\"B\" || @.price==8)].title", ["\"B\"", "\"C\""]),
            ("$.store.book[?((@.title=='A'||@.title=='B')&&@.price!=12)].title", ["\"A\""]),
            ("$.store.book[?(@.price>$.price)].title", ["\"A\"", "\"B\"", "\"C\""]),
            ("$.store.book[?(@.title>1)].title", []), ("$.store.book[?(@.title!=1)].price", ["8.95", "12", "8"]),
            ("$.list[?(@>=3)]", ["3", "4"]), ("$.no", ["null"]), ("$[?(@==null)]", ["null"]),
            ("$.store.book[?(@.tags==$..tags)].title", ["\"C\""]),
        ] as [(String, [String])])
    func valuesAreFound(path: String, expected: [String]) throws {
        #expect(try Self.find(path, in: Self.document) == expected)
    }

    @Test func theWholeDocumentIsFound() throws {
        for path in ["$", "."] { #expect(try Self.find(path, in: "[1]") == ["[1]"]) }
        #expect(try Self.find("$[*]", in: "{\"a\":1,\"b\":[2]}") == ["1", "[2]"])
        #expect(try Self.find("$a", in: "{\"$a\":1}") == ["1"], "a legacy path may begin with $")
    }

    @Test func theFirstOfTwoMembersWithOneNameCounts() throws {
        #expect(try Self.find("$.a", in: #"{"a":1,"\u0061":2}"#) == ["1"])
    }

    @Test(arguments: [
        ("", 0), ("$.", 2), ("$[", 2), ("$[]", 2), ("$[1", 3), ("$['a]", 5), ("$.a]", 3), ("$[1:2:0]", 6),
        ("$[?(@.a=~'x')]", 7),
        ("$[?(@.a==)]", 9), ("$[?(@.a<1]", 9), ("$[99999999999]", 2), ("$..", 3), ("$.a b", 3), ("a..", 3),
    ])
    func malformedPathsAreRejected(path: String, offset: Int) {
        #expect {
            _ = try Array(path.utf8).withUnsafeBytes { try JSONPath($0) }
        } throws: {
            ($0 as? JSONPath.Defect)?.offset == offset
        }
    }

    /// Otherwise a short path and a short text could keep a processor busy for hours.
    @Test func repeatedVisitsAreLimited() throws {
        let text = String(repeating: "[", count: 300) + String(repeating: "]", count: 300)
        #expect(throws: JSONPath.TooManyVisits.self) {
            try Self.find("$" + String(repeating: "..*", count: 8), in: text)
        }
        #expect(try Self.find("$..*", in: text).count == 299)
        // A filter in a filter compares each element with all elements.
        let array = "[" + Array(repeating: "1", count: 500).joined(separator: ",") + "]"
        #expect(throws: JSONPath.TooManyVisits.self) { try Self.find("$[?($[?(@==1)])]", in: array) }
        #expect(throws: JSONPath.Defect.self) {
            try Self.find("$[?" + String(repeating: "(", count: 100_000) + "@", in: text)
        }
    }
}
