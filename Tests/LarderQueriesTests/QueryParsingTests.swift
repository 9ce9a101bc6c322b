import LarderJSONCoding
import LarderQueries
import Testing

@Suite struct QueryParsingTests {
    private func error(_ words: String...) -> String { error(words) }

    private func error(_ words: [String]) -> String {
        do throws(QueryError) {
            _ = try Query(QueryRun.words(words))
            return ""
        } catch {
            return error.text
        }
    }

    @Test func clausesAreReadInAnyOrderAndCase() throws {
        let query = try Query(
            QueryRun.words([
                "keys", "limit", "5", "Where", "a", "exists", "skip", "2", "SCAN", "sort", "a", "desc", "b",
            ]))
        #expect(query.output == .keys && query.limit == 5 && query.skip == 2 && query.scans)
        #expect(query.order.parts.map(\.path.text) == ["a", "b"])
        #expect(query.order.parts.map(\.isDescending) == [true, false])
        #expect(try Query([]).rowsMax == 1000)
        #expect(
            try Query(QueryRun.words(["SELECT", "2", "limit", "@key"])).output
                == .select([.init("limit"), .init("@key")]))
    }

    @Test func errorsSayWhatIsExpected() {
        #expect(
            error("LIMT", "5")
                == "KEYS, COUNT, SELECT, GROUP, WHERE, SORT, SKIP, LIMIT, AFTER or SCAN expected, not 'LIMT'; "
                + "did you mean LIMIT?")
        #expect(
            error("GROUP", "a", "AVG", "b")
                == "COUNT, SUM, MIN, MAX, WHERE, SORT, SKIP, LIMIT, AFTER or SCAN expected, not 'AVG' after 'a'")
        for words in [["SELECT", "2", "a,", "b"], ["SORT", "a,", "b"], ["WHERE", "a,", "=", "1"]] {
            let text = "'a,' contains a comma, but words are separated by spaces only; a field of that name is $.a,"
            #expect(error(words) == text)
        }
        #expect(error("SORT", "a,b").hasSuffix("a field of that name is $.a,b"))
        #expect(QueryPath.word("a,") == "$.a,")
        #expect(error("WHERE") == "a path expected, but the words end after 'WHERE'")
        #expect(error("WHERE", "a", "==", "5") == "an operator expected, not '==' after 'a'; did you mean =?")
        for words in [["is", "null"], ["IS", "NOT", "NULL"]] {
            let advice = "did you mean = null, MISSING, or EXISTS AND … != null?"
            #expect(error(["WHERE", "a"] + words).hasSuffix("after 'a'; \(advice)"))
        }
        #expect(
            error("WHERE", "a", "not", "like", "x")
                == "IN expected, not 'like' after 'not'; NOT precedes other conditions: NOT a …")
        #expect(
            error("WHERE", "a", "not", "in", "(1,", "2)")
                == "the number of values after IN, as in IN 2 x y, must be a number from 0 on, not '(1,'")
        #expect(error("WHERE", "a", "<>", "5") == "an operator expected, not '<>' after 'a'; did you mean !=?")
        #expect(error("WHERE", "a", "=>", "5").hasSuffix("not '=>' after 'a'; did you mean >=?"))
        #expect(error("WHERE", "a", "=!", "5").hasSuffix("not '=!' after 'a'; did you mean !=?"))
        #expect(error("WHERE", "a", "BETWEN", "1", "2").hasSuffix("did you mean BETWEEN?"))
        #expect(error("WHERE", "a", "=") == "a value expected, but the words end after '='")
        #expect(
            error("WHERE", "a", "=", "new", "york").hasPrefix(
                "AND, OR, SORT, SKIP, LIMIT, AFTER or SCAN expected, not 'york'"))
        #expect(error("WHERE", "(", "a", "=", "1") == "AND, OR or ) expected, but the words end after '1'")
        #expect(error("WHERE", "a", "=", "JSON", "{x}") == "'{x}' after JSON is not JSON")
        #expect(error("WHERE", "a..b", "=", "1").hasPrefix("invalid path 'a..b'"))
        #expect(error("WHERE", "$[\"a.b\"]", "=", "1").hasPrefix("invalid path '$[\"a.b\"]'"))
        #expect(error("WHERE", "a", "BETWEEN", "1", "AND", "2").contains("two values without AND"))
        #expect(error("WHERE", "@age", "=", "1").contains("@key, @stored and @expires"))
        #expect(error("WHERE", "a", "IN", "x", "1").contains("must be a number"))
        #expect(error("WHERE", "a", "IN", "3", "1") == "a value expected, but the words end after '1'")
        #expect(error("WHERE", "a", "IN", "0") == "IN needs at least one value")
        #expect(error("WHERE", "a", "NEAR", "200", "0", "1", "m").contains("longitude is between"))
        #expect(error("WHERE", "a", "NEAR", "0", "0", "1", "ft") == "m, km or mi expected, not 'ft' after '1'")
        #expect(error("LIMIT", "-1").contains("LIMIT must be a number"))
        #expect(error("LIMIT") == "a number after LIMIT expected, but the words end after 'LIMIT'")
        #expect(error("LIMIT", "5", "LIMIT", "6") == "LIMIT is repeated")
        #expect(error("SORT", "a", "a").contains("repeated"))
        #expect(error("SORT").hasPrefix("a path expected"))
        #expect(error("SELECT", "0") == "SELECT needs at least one path")
        #expect(error("GROUP", "a", "SORT", "b").contains("SORT takes only the path of GROUP"))
        #expect(error("GROUP", "a", "SUM", "b", "sum", "$.b") == "SUM b is repeated")
        #expect(error("SORT", "a", "asc").contains("ASC is out of place after a path: ascending is the default"))
        #expect(error("SORT", "a", "descending").contains("DESCENDING is out of place after a path: use DESC; a field"))
        #expect(error("SORT", "by", "a") == "BY is out of place before a path; a field of that name is $.by")
        #expect(
            error("SORT", "a", "KEYS").contains("KEYS is out of place after a path; a field of that name is $.keys"))
        #expect(error("WHERE", "a", "LIKE", String(repeating: "*", count: 1025)).contains("at most 1024 bytes"))
    }

    @Test(
        "the next page has the words of the query with AFTER, and without SKIP",
        arguments: [
            ("KEYS LIMIT 5", "KEYS LIMIT 5 AFTER c"), ("SKIP 3 LIMIT 5", "LIMIT 5 AFTER c"), ("", "AFTER c"),
            ("KEYS after b WHERE a = AFTER skip 7 SCAN", "KEYS WHERE a = AFTER SCAN AFTER c"),
            ("SELECT 2 skip after WHERE a IN 2 SKIP 1 SKIP 2", "SELECT 2 skip after WHERE a IN 2 SKIP 1 AFTER c"),
        ])
    func theNextPageHasAfterInsteadOfSkip(words: String, next: String) {
        func split(_ text: String) -> [[UInt8]] { text.utf8.split(separator: 0x20).map(Array.init) }
        #expect(Query.words(split(words), after: Array("c".utf8)) == split(next))
    }

    @Test func columnsAreNamedLikeTheWords() throws {
        func columns(_ words: String...) throws -> [String] { try Query(QueryRun.words(words)).columns }
        #expect(try columns() == ["KEY", "VALUE"] && columns("KEYS") == ["KEY"] && columns("COUNT") == ["COUNT"])
        #expect(try columns("SELECT", "2", "a", "$.b") == ["KEY", "a", "b"])
        #expect(
            try columns("GROUP", "a", "min", "b", "MAX", "c", "count", "SUM", "d")
                == ["a", "MIN b", "MAX c", "COUNT", "SUM d"])
    }

    @Test func skipHasALimitThatPointsToAfter() {
        #expect(error("SKIP", "10000").isEmpty)
        #expect(error("SKIP", "10001") == "SKIP is at most 10000; use AFTER with the cursor of the previous page")
    }

    @Test func deepConditionsAreRefused() throws {
        let deep = Array(repeating: "(", count: 101) + ["a", "EXISTS"] + Array(repeating: ")", count: 101)
        #expect(throws: QueryError.self) { try Query(QueryRun.words(["WHERE"] + deep)) }
        let most = Array(repeating: "NOT", count: 99) + ["a", "EXISTS"]
        #expect(try QueryRun.matches(most, .init(key: "", text: "{}")))
    }

    @Test func cursorsAreCheckedAndBelongToTheirQuery() throws {
        let entries = (0..<5).map { QueryRun.Entry(key: "k\($0)", text: "{\"a\":\(5 - $0)}") }
        let query = ["KEYS", "WHERE", "a", ">", "0", "SORT", "a"]
        let page = try QueryRun.keys(query + ["LIMIT", "2"], entries)
        let cursor = try #require(page.cursor)
        // The limit and what is returned may change.
        let next = try QueryRun.keys(["WHERE", "a", ">", "0.0", "SORT", "a", "AFTER", cursor], entries)
        #expect(page.keys == ["k4", "k3"] && next.keys == ["k2", "k1", "k0"] && next.cursor == nil)
        #expect(
            error("WHERE", "a", ">", "1", "SORT", "a", "AFTER", cursor)
                == "the cursor belongs to another query: WHERE and SORT must be the same on each page")
        #expect(error("WHERE", "a", ">", "0", "SORT", "a", "DESC", "AFTER", cursor).contains("another query"))
        for wrong in ["", "x", "%", String(cursor.dropLast()), cursor + "A"] {
            #expect(error("KEYS", "WHERE", "a", ">", "0", "SORT", "a", "AFTER", wrong).hasPrefix("invalid cursor"))
        }
        for index in cursor.indices {
            var damaged = cursor
            damaged.replaceSubrange(index...index, with: cursor[index] == "A" ? "B" : "A")
            #expect(error("KEYS", "WHERE", "a", ">", "0", "SORT", "a", "AFTER", damaged).hasPrefix("invalid cursor"))
        }
        #expect(
            error("COUNT", "AFTER", cursor)
                == "the cursor belongs to another query: WHERE and SORT must be the same on each page")
    }

    @Test func cursorsKeepEveryKindOfValue() throws {
        let texts = [
            "{}", #"{"a":null}"#, #"{"a":false}"#, #"{"a":true}"#, #"{"a":-170141183460469231731687303715884105728}"#,
            #"{"a":-5}"#, #"{"a":0.1}"#, #"{"a":1e400}"#, #"{"a":"\u0000é"}"#, #"{"a":{}}"#,
        ]
        let entries = texts.enumerated().map { QueryRun.Entry(key: "\($0)", text: $1) }
        var keys: [String] = []
        var cursor: String?
        repeat {
            let page = try QueryRun.keys(
                ["KEYS", "SORT", "a", "LIMIT", "1"] + (cursor.map { ["AFTER", $0] } ?? []), entries)
            keys += page.keys
            cursor = page.cursor
        } while cursor != nil
        #expect(keys == entries.map(\.key))
    }

    @Test func misspeltFieldsAreReported() throws {
        let query = try Query(
            QueryRun.words(["WHERE", "auhtor", "=", "Bo", "AND", "at.zpi", "=", "1", "SORT", "year"]))
        var report = FieldReport(query)
        #expect(report.sentences(of: .all).isEmpty)
        for text in [#"{"author":"Bo","at":{"zip":1}}"#, #"{"author":"Al","year":1}"#] {
            try QueryRun.with(.init(key: "", text: text)) { document, _ in report.examine(document) }
        }
        #expect(
            report.sentences(of: .all) == [
                "no entry has the field 'auhtor'; did you mean 'author'?",
                "no entry has the field 'at.zpi'; did you mean 'zip'?",
            ])
        #expect(
            report.sentences(of: .some) == [
                "no examined entry has the field 'auhtor'; did you mean 'author'?",
                "no examined entry has the field 'at.zpi'; did you mean 'zip'?",
            ])
    }
}
