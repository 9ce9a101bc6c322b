import LarderQueries
import Testing

/// What the documentation says of values, conditions, sorting and grouping, sentence by sentence.
@Suite struct ConditionTests {
    private func holds(_ condition: String..., in text: String) throws -> Bool {
        try QueryRun.matches(condition, .init(key: "k", text: text))
    }

    @Test func pathsStepThroughObjectsAndArraysOnly() throws {
        #expect(try holds("a.b", "=", "1", in: #"{"a":{"b":1}}"#))
        #expect(try holds("a.0", "=", "1", in: #"{"a":[1,2]}"#))
        #expect(try holds("a.1.b", "=", "x", in: #"{"a":[1,{"b":"x"}]}"#))
        #expect(try holds("a.0", "=", "1", in: #"{"a":{"0":1}}"#))
        // `a.name` does not look into the objects of an array.
        #expect(try holds("a.name", "MISSING", in: #"{"a":[{"name":1}]}"#))
        #expect(try holds("a.2", "MISSING", in: #"{"a":[1,2]}"#))
        #expect(try holds("$", "=", "5", in: "5"))
        // Of members with the same name, the first counts.
        #expect(try holds("a", "=", "1", in: #"{"a":1,"a":2}"#))
        #expect(try holds("ab", "=", "1", in: #"{"\u0061b":1}"#))
    }

    @Test func comparisonsApplyWithinOneType() throws {
        #expect(try !holds("year", ">", "5", in: #"{"year":"6"}"#))
        #expect(try !holds("year", "<", "5", in: #"{"year":"4"}"#))
        #expect(try !holds("year", "<", "5", in: #"{"year":null}"#))
        #expect(try !holds("year", "<", "5", in: "{}"))
        #expect(try !holds("year", "=", "5", in: #"{"year":"5"}"#))
        #expect(try holds("year", "=", "5", in: #"{"year":5.0}"#))
        #expect(try !holds("a", "BETWEEN", "1", "b", in: #"{"a":5}"#))
        #expect(try holds("a", "BETWEEN", "1", "5", in: #"{"a":5}"#))
        #expect(try holds("a", "<", "true", in: #"{"a":false}"#))
        #expect(try holds("a", ">=", "false", in: #"{"a":true}"#))
        #expect(try !holds("a", ">", "null", in: #"{"a":false}"#))
        #expect(try holds("a", "<", "STR b", in: #"{"a":"STR a"}"#))
        // Bytes of UTF-8: z before é.
        #expect(try holds("a", ">", "z", in: #"{"a":"é"}"#))
        #expect(try holds("a", ">", "9007199254740992", in: #"{"a":9007199254740993}"#))
    }

    @Test(arguments: [
        "9223372036854775807", "-9223372036854775808", "170141183460469231731687303715884105727",
        "-170141183460469231731687303715884105728", "0",
    ])
    func comparisonsOfIntegersAreExactAtTheLimitsOfTheirTypes(_ limit: String) throws {
        let number = try #require(Int128(limit))
        for other in [number, number &- 1, number &+ 1, 1, -1] {
            let document = "{\"n\":\(other)}"
            #expect(try holds("n", "=", limit, in: document) == (other == number))
            #expect(try holds("n", "<", limit, in: document) == (other < number))
            #expect(try holds("n", "<=", limit, in: document) == (other <= number))
            #expect(try holds("n", ">", limit, in: document) == (other > number))
            #expect(try holds("n", ">=", limit, in: document) == (other >= number))
            #expect(try holds("n", "BETWEEN", "0", limit, in: document) == (other >= 0 && other <= number))
        }
    }

    @Test func aConditionOnAnArrayHoldsForAnyElement() throws {
        let text = #"{"tags":["x","y",[1]],"empty":[]}"#
        #expect(try holds("tags", "=", "y", in: text))
        #expect(try holds("tags", ">", "x", in: text))
        #expect(try !holds("tags", "=", "z", in: text))
        #expect(try !holds("tags", "!=", "x", in: text))
        #expect(try holds("tags", "PREFIX", "y", in: text))
        // Only elements of the array itself.
        #expect(try !holds("tags", "=", "1", in: text))
        #expect(try !holds("empty", "=", "x", in: text))
        #expect(try holds("empty", "!=", "x", in: text))
    }

    @Test func negationsHoldWhereTheFieldIsMissing() throws {
        #expect(try holds("a", "!=", "1", in: "{}"))
        #expect(try holds("a", "NOT", "IN", "2", "1", "2", in: "{}"))
        #expect(try holds("NOT", "a", "IN", "2", "1", "2", in: #"{"a":3}"#))
        #expect(try holds("NOT", "a", ">", "1", in: "{}"))
        #expect(try !holds("a", "NOT", "IN", "2", "1", "2", in: #"{"a":[5,2]}"#))
    }

    @Test func existsIsTrueForNullAndEmptyArrays() throws {
        #expect(try holds("a", "EXISTS", in: #"{"a":null}"#))
        #expect(try holds("a", "EXISTS", in: #"{"a":[]}"#))
        #expect(try !holds("a", "EXISTS", in: "{}"))
        #expect(try holds("a", "MISSING", in: "{}"))
        #expect(try !holds("a", "MISSING", in: #"{"a":null}"#))
    }

    @Test func allTakesAScalarForAnArrayOfOneElement() throws {
        #expect(try holds("a", "ALL", "2", "x", "y", in: #"{"a":["y","z","x"]}"#))
        #expect(try !holds("a", "ALL", "2", "x", "y", in: #"{"a":["x"]}"#))
        #expect(try holds("a", "ALL", "1", "x", in: #"{"a":"x"}"#))
        #expect(try holds("a", "ALL", "2", "x", "x", in: #"{"a":"x"}"#))
        #expect(try !holds("a", "ALL", "2", "x", "y", in: #"{"a":"x"}"#))
        #expect(try holds("a", "ALL", "2", "STR", "1", "JSON", "[2]", in: #"{"a":["1",[2]]}"#))
        #expect(try !holds("a", "ALL", "1", "x", in: "{}"))
    }

    @Test func equalityWithJSONComparesTheWholeValueToo() throws {
        #expect(try holds("a", "=", "JSON", #"{"y":2,"x":1}"#, in: #"{"a":{"x":1.0,"y":2}}"#))
        #expect(try holds("a", "=", "JSON", "[1,2]", in: #"{"a":[1,2]}"#))
        #expect(try !holds("a", "=", "JSON", "[2,1]", in: #"{"a":[1,2]}"#))
        #expect(try holds("a", "=", "JSON", "[1,2]", in: #"{"a":[[1,2],3]}"#))
        #expect(try holds("a", "=", "JSON", "[]", in: #"{"a":[]}"#))
        #expect(try holds("a", "=", "JSON", #"{"x":[{}]}"#, in: #"{"a":[0,{"x":[{}]}]}"#))
        #expect(try holds("a", "IN", "2", "JSON", "[1]", "5", in: #"{"a":[1]}"#))
        #expect(try holds("a", "!=", "JSON", "[1]", in: #"{"a":[1,2]}"#))
    }

    @Test func aValueThatLooksLikeJSONIsReadAsJSON() throws {
        #expect(try holds("a", "=", "5", in: #"{"a":5}"#))
        #expect(try holds("a", "=", "STR", "5", in: #"{"a":"5"}"#))
        #expect(try holds("a", "=", "true", in: #"{"a":true}"#))
        #expect(try holds("a", "=", "STR", "true", in: #"{"a":"true"}"#))
        #expect(try holds("a", "=", "null", in: #"{"a":null}"#))
        #expect(try holds("a", "=", "True", in: #"{"a":"True"}"#))
        #expect(try holds("a", "=", "007", in: #"{"a":"007"}"#))
        #expect(try holds("a", "=", "-1.5e1", in: #"{"a":-15}"#))
        #expect(try holds("a", "=", "[1]", in: #"{"a":"[1]"}"#))
        #expect(try holds("a", "=", #""x""#, in: #"{"a":"\"x\""}"#))
        #expect(try holds("a", "=", "JSON", #""x""#, in: #"{"a":"x"}"#))
        #expect(try holds("a", "=", "STR", "STR", in: #"{"a":"STR"}"#))
        // Only in capitals, so that `format = json` is a condition on text.
        #expect(try holds("a", "=", "json", in: #"{"a":"json"}"#))
        #expect(try holds("a", "=", "", in: #"{"a":""}"#))
        #expect(try holds("a", "IN", "3", "STR", "1", "JSON", "2", "x", in: #"{"a":2}"#))
    }

    @Test func prefixTakesTextAndLikeTwoWildcards() throws {
        #expect(try holds("a", "PREFIX", "1", in: #"{"a":"12"}"#))
        #expect(try !holds("a", "PREFIX", "1", in: #"{"a":12}"#))
        #expect(try holds("a", "LIKE", "S?a*", in: #"{"a":"S\u00f6a of x"}"#))
        #expect(try !holds("a", "LIKE", "s?a*", in: #"{"a":"Sea"}"#))
        #expect(try holds("a", "LIKE", "?", in: #"{"a":"🐟"}"#))
        // One letter, two scalars.
        #expect(try !holds("a", "LIKE", "?", in: #"{"a":"e\u0301"}"#))
        #expect(try holds("a", "LIKE", #"[x]\*"#, in: #"{"a":"[x]\\y"}"#))
        #expect(try holds("a", "LIKE", "*ab*ab", in: #"{"a":"aababab"}"#))
        #expect(try !holds("a", "LIKE", "", in: #"{"a":"x"}"#))
    }

    @Test func andBindsTighterThanOr() throws {
        let words = ["a", "=", "1", "OR", "b", "=", "1", "AND", "c", "=", "1"]
        #expect(try QueryRun.matches(words, .init(key: "", text: #"{"a":1}"#)))
        #expect(try !QueryRun.matches(words, .init(key: "", text: #"{"b":1}"#)))
        #expect(
            try !QueryRun.matches(
                ["("] + words[..<7] + [")"] + words[7...], .init(key: "", text: #"{"a":1}"#)))
        // NOT applies to the next test only.
        #expect(try holds("NOT", "a", "=", "1", "AND", "b", "=", "1", in: #"{"a":2,"b":1}"#))
        #expect(try !holds("NOT", "(", "a", "=", "2", "AND", "b", "=", "1", ")", in: #"{"a":2,"b":1}"#))
    }

    @Test func pathsWithAnAtSignReferToTheEntry() throws {
        let entry = QueryRun.Entry(key: "book:1", text: "{}", stored: 1000, expires: 2000)
        #expect(try QueryRun.matches(["@key", "PREFIX", "book:"], entry))
        #expect(try QueryRun.matches(["@key", "=", "STR", "book:1"], entry))
        #expect(try QueryRun.matches(["@stored", "<", "1001"], entry))
        #expect(try QueryRun.matches(["@expires", "BETWEEN", "2000", "3000"], entry))
        #expect(try QueryRun.matches(["@expires", "MISSING"], .init(key: "k", text: "{}")))
        #expect(throws: QueryError.self) { try QueryPath("@stord") }
    }

    // MARK: Places

    @Test func placesAreArraysOrObjects() throws {
        let near = ["at", "NEAR", "13.4", "52.5", "10", "km"]
        for text in [
            #"[13.41,52.52]"#, #"{"lon":13.41,"lat":52.52}"#, #"{"lng":13.41,"latitude":52.52}"#,
            #"{"longitude":13.41,"lat":52.52,"name":"x"}"#, #"[[0,0],[13.41,52.52]]"#,
        ] {
            #expect(try QueryRun.matches(near, .init(key: "", text: "{\"at\":\(text)}")), "\(text)")
            let box = ["at", "WITHIN", "13", "52", "14", "53"]
            #expect(try QueryRun.matches(box, .init(key: "", text: "{\"at\":\(text)}")), "\(text)")
        }
        for text in ["[52.52,13.41]", "[13.41]", #"["13.41",52.52]"#, "[13.41,52.52,1]", "[200,52]", "{}", "null"] {
            #expect(try !QueryRun.matches(near, .init(key: "", text: "{\"at\":\(text)}")), "\(text)")
        }
    }

    @Test func distancesAreThoseOfTheSphere() throws {
        // Palermo and Catania, as in the documentation of Redis' GEODIST.
        let palermo = try #require(QueryPlace(longitude: 13.361389, latitude: 38.115556))
        let catania = try #require(QueryPlace(longitude: 15.087269, latitude: 37.502669))
        #expect(abs(palermo.distance(to: catania) - 166_274.15) < 1)
        let text = #"{"at":[15.087269,37.502669]}"#
        #expect(try holds("at", "NEAR", "13.361389", "38.115556", "167", "km", in: text))
        #expect(try !holds("at", "NEAR", "13.361389", "38.115556", "166", "KM", in: text))
        #expect(try holds("at", "NEAR", "13.361389", "38.115556", "166275", "m", in: text))
        #expect(try holds("at", "NEAR", "13.361389", "38.115556", "104", "mi", in: text))
        #expect(try !holds("at", "NEAR", "13.361389", "38.115556", "103", "mi", in: text))
    }

    @Test func boxesMayCrossThe180thMeridian() throws {
        #expect(try holds("at", "WITHIN", "170", "-20", "-170", "20", in: #"{"at":[179,0]}"#))
        #expect(try holds("at", "WITHIN", "170", "20", "-170", "-20", in: #"{"at":[-179,0]}"#))
        #expect(try !holds("at", "WITHIN", "-170", "-20", "170", "20", in: #"{"at":[179,0]}"#))
    }

    // MARK: Order and groups

    @Test func sortingUsesTheOrderOfAllValues() throws {
        let texts = [
            "{}", #"{"a":null}"#, #"{"a":false}"#, #"{"a":true}"#, #"{"a":-1e400}"#, #"{"a":-2}"#, #"{"a":1.5}"#,
            #"{"a":123456789012345678901234567890}"#, #"{"a":""}"#, #"{"a":"B"}"#, #"{"a":"a"}"#, #"{"a":"é"}"#,
            #"{"a":[]}"#, #"{"a":{"x":1}}"#,
        ]
        let entries = texts.enumerated().map { QueryRun.Entry(key: String(UnicodeScalar(UInt8(97 + $0))), text: $1) }
        let keys = entries.map(\.key)
        #expect(try QueryRun.keys(["KEYS", "SORT", "a"], entries.reversed()).keys == keys)
        // Arrays and objects are equal in this order, and equal entries are ordered by key.
        let descending = try QueryRun.keys(["KEYS", "SORT", "a", "DESC"], entries).keys
        #expect(descending == Array(keys.suffix(2)) + keys.dropLast(2).reversed())
    }

    @Test func sortingByAnArrayUsesItsSmallestOrLargestElement() throws {
        let entries = [
            QueryRun.Entry(key: "x", text: #"{"a":[5,1]}"#), .init(key: "y", text: #"{"a":[3,2]}"#),
            .init(key: "z", text: #"{"a":4}"#),
        ]
        #expect(try QueryRun.keys(["KEYS", "SORT", "a"], entries).keys == ["x", "y", "z"])
        #expect(try QueryRun.keys(["KEYS", "SORT", "a", "DESC"], entries).keys == ["x", "z", "y"])
        #expect(try QueryRun.keys(["KEYS", "SORT", "b", "a", "DESC"], entries).keys == ["x", "z", "y"])
    }

    @Test func groupsCountDistinctElementsAndUseNumbersOnly() throws {
        let entries = [
            QueryRun.Entry(key: "1", text: #"{"t":["x","y","x"],"n":1}"#), .init(key: "2", text: #"{"t":"x","n":2.5}"#),
            .init(key: "3", text: #"{"t":"x","n":"7"}"#), .init(key: "4", text: #"{"n":9}"#),
            .init(key: "5", text: #"{"t":["z"]}"#),
        ]
        let groups = try QueryRun.groups(
            ["GROUP", "t", "COUNT", "SUM", "n", "MIN", "n", "MAX", "n"], entries)
        #expect(
            groups == [
                [#""x""#, "3", "3.5", "1", "2.5"], [#""y""#, "1", "1", "1", "1"],
                [#""z""#, "1", "null", "null", "null"],
            ])
        #expect(
            try QueryRun.groups(["GROUP", "t", "SORT", "t", "DESC"], entries) == [[#""z""#], [#""y""#], [#""x""#]])
        // Equal numbers are one group; the sum of integers is exact.
        let numbers = ["1", "1.0", "10e-1", "9007199254740993"].enumerated().map {
            QueryRun.Entry(key: "\($0)", text: "{\"a\":\($1),\"b\":9007199254740993}")
        }
        #expect(
            try QueryRun.groups(["GROUP", "a", "COUNT", "SUM", "b"], numbers) == [
                ["1", "3", "27021597764222979"], ["9007199254740993", "1", "9007199254740993"],
            ])
    }
}
