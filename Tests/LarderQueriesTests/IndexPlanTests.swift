import LarderJSONCoding
import LarderTestSupport
import Testing

@testable import LarderQueries

/// Tests that terms have the order of their values, and that each matching entry is a candidate.
@Suite struct IndexPlanTests {
    private static func terms(_ entry: QueryRun.Entry, _ definition: IndexDefinition) throws -> [[UInt8]] {
        try QueryRun.with(entry) { document, facts in
            var terms: [[UInt8]] = []
            IndexTerms.forEach(of: document, facts, definition) { terms.append($0) }
            return terms
        }
    }

    private static func value(_ random: inout SeededGenerator) -> QueryValue {
        switch random.below(10) {
        case 0: .missing
        case 1: [.null, .no, .yes, .container].randomElement(using: &random) ?? .null
        case 2, 3: .number(.integer(Int128(random.below(5) - 2)))
        case 4: .number(.integer([1 << 53, 1 << 53 + 1, 1 << 63, -(1 << 63) - 1, 1 << 100 + 1][random.below(5)]))
        case 5:
            .number(QueryNumber([0.5, -0.5, .leastNonzeroMagnitude, -1e308, .infinity, -.infinity][random.below(6)]))
        default:
            .text(
                (0..<[0, 1, 2, 94, 95, 96, 97, 200][random.below(8)]).map { _ in [0, 0, 1, 0x61, 0xFF][random.below(5)]
                })
        }
    }

    private static let paths = ["a", "b", "c", "a.b", "a.0", "d\u{e9}"]

    private static func definition(_ random: inout SeededGenerator) throws -> IndexDefinition {
        let words = paths.shuffled(using: &random).prefix(1 + random.below(3)).flatMap {
            random.oneIn(3) ? [$0, "DESC"] : [$0]
        }
        return try IndexDefinition(QueryRun.words((random.oneIn(4) ? ["PREFIX", "b"] : []) + ["ON"] + words))
    }

    // MARK: Terms

    @Test func termsHaveTheOrderOfTheirValues() throws {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<30_000 {
            let definition = try Self.definition(&random)
            let count = definition.order.parts.count
            var left = (0..<count).map { _ in Self.value(&random) }
            let right = (0..<count).map { _ in Self.value(&random) }
            // Often the same beginning.
            if random.oneIn(2) { left[0] = right[0] }
            let terms = [left, right].map { IndexTerms.term(0, $0, definition.order) }
            let (first, second) = (QueryPosition(values: left, key: []), QueryPosition(values: right, key: []))
            if definition.order.precedes(first, second) {
                #expect(!terms[1].lexicographicallyPrecedes(terms[0]), "\(left) \(right) \(definition.text)")
            }
            // Also in the order of the first path only, in which groups of terms follow each other.
            let ends = terms.map { $0[..<IndexTerms.end(of: 1, in: $0, definition.order)] }
            if definition.order.parts[0].isDescending ? left[0].order(right[0]) > 0 : left[0].order(right[0]) < 0 {
                #expect(!ends[1].lexicographicallyPrecedes(ends[0]))
            } else if left[0] == right[0] {
                #expect(ends[0] == ends[1])
            }
            if terms[0] != terms[1] { #expect(!terms[0].starts(with: terms[1]) && !terms[1].starts(with: terms[0])) }
            #expect(terms.allSatisfy { $0.count <= 1024 })
        }
    }

    @Test func differentScalarsHaveDifferentTermsUnlessTheyAreLong() throws {
        let definition = try IndexDefinition(QueryRun.words(["ON", "a"]))
        let texts = ["", "a", "b", "\u{0}", String(repeating: "x", count: 96)]
        let values: [QueryValue] =
            [.missing, .null, .no, .yes, .container] + texts.map { .text(Array($0.utf8)) }
            + [0, 1, -1, 1 << 53 - 1].map { .number(.integer($0)) } + [.number(.real(0.5))]
        #expect(Set(values.map { IndexTerms.term(0, [$0], definition.order) }).count == values.count)
    }

    @Test func arraysHaveATermForEachElement() throws {
        let definition = try IndexDefinition(QueryRun.words(["PREFIX", "b:", "ON", "tags", "year", "DESC"]))
        func count(_ text: String, key: String = "b:1") throws -> Int {
            Set(try Self.terms(.init(key: key, text: text), definition)).count
        }
        #expect(try count(#"{"tags":["x","y","x"],"year":1}"#) == 2)
        #expect(try count("{}") == 1)
        #expect(try count("5") == 1)
        #expect(try count("{}", key: "c:1") == 0)
        let several: [[UInt8]] = [[IndexTerms.Region.several]]
        #expect(try Self.terms(.init(key: "b:1", text: #"{"tags":["x"],"year":[1]}"#), definition) == several)
        let many = (0...256).map { "\($0)" }
        #expect(
            try Self.terms(.init(key: "b:1", text: "{\"tags\":[\(many.joined(separator: ","))]}"), definition)
                == several)
        #expect(try count("{\"tags\":[\(many.dropLast().joined(separator: ","))]}") == 256)
    }

    @Test func definitionsAreReadFromTheirBytes() throws {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<200 {
            let definition = try Self.definition(&random)
            #expect(IndexDefinition(bytes: definition.bytes) == definition)
            #expect(IndexDefinition(bytes: definition.bytes.dropLast()) == nil)
            #expect(IndexDefinition(bytes: definition.bytes + [0]) == nil)
        }
        for wrong in [
            ["ON"], ["a"], ["ON", "a", "a"], ["ON", "@key"], ["ON", "@expires"], ["GEO", "a"], ["ON", "a..b"],
        ] {
            #expect(throws: QueryError.self, "\(wrong)") { try IndexDefinition(QueryRun.words(wrong)) }
        }
        #expect(try IndexDefinition(QueryRun.words(["ON", "a", "DESC", "@stored"])).text == "ON a DESC @stored")
    }

    // MARK: Plans

    @Test func matchingEntriesAreCandidatesInTheOrderOfTheRows() throws {
        var random = SeededGenerator(seed: testSeed())
        var (planned, ordered, matches, excluded) = (0, 0, 0, 0)
        for _ in 0..<600 {
            let definitions = try (0..<1 + random.below(3)).map { _ in try Self.definition(&random) }
            let sort = random.oneIn(2) ? definitions[0].order : QueryOrder()
            let flip = random.oneIn(2)
            let sortWords = sort.parts.flatMap { $0.isDescending != flip ? [$0.path.text, "DESC"] : [$0.path.text] }
            var words = random.oneIn(5) ? [] : ["WHERE"] + OracleCondition.random(&random).words
            if random.oneIn(3) { words += (words.isEmpty ? ["WHERE"] : ["AND"]) + ["@key", "PREFIX", "b"] }
            let entries = (0..<30).map { index in
                let tree = QueryTree.object(&random)
                return QueryRun.Entry(key: "b\(index)", text: tree.json(&random))
            }
            let all = words + (sortWords.isEmpty ? [] : ["SORT"] + sortWords)
            var query = try Query(QueryRun.words(["KEYS"] + all))
            if random.oneIn(3) {
                let page = try QueryRun.keys(["KEYS", "LIMIT", "3"] + all, entries)
                if let cursor = page.cursor { query = try Query(QueryRun.words(["KEYS", "AFTER", cursor] + all)) }
            }
            guard let plan = IndexPlanner(definitions, query).plan(query) else { continue }
            planned += 1
            ordered += plan.ordered == nil ? 0 : 1
            let order = plan.ordered?.order ?? query.rowOrder
            var inOrder: [(group: [UInt8], position: QueryPosition)] = []
            for entry in entries {
                let position = try QueryRun.with(entry) { document, facts in
                    QueryPosition(values: order.values(document, facts), key: Array(entry.key.utf8))
                }
                let isWanted = query.cursor.map { order.precedes($0.last, position) } ?? true
                let isMatch = try isWanted && QueryRun.with(entry) { query.condition?.evaluator($0, $1) ?? true }
                var isCandidate = false
                for part in plan.parts {
                    let terms = try Self.terms(entry, definitions[part.index])
                    if terms.contains(where: { term in part.ranges.contains { $0.contains(term) } }) {
                        isCandidate = true
                    }
                }
                if let range = plan.ordered, let term = try Self.terms(entry, definitions[range.index]).first,
                    term[0] == IndexTerms.Region.single, range.range.contains(term)
                {
                    isCandidate = true
                    if isMatch { inOrder.append((Array(range.group(term, definitions[range.index])), position)) }
                }
                matches += isMatch ? 1 : 0
                excluded += isCandidate ? 0 : 1
                #expect(isCandidate || !isMatch, "\(all) \(definitions.map(\.text)) \(entry)")
            }
            let isBackward = plan.ordered?.isBackward ?? false
            inOrder.sort {
                isBackward ? $1.group.lexicographicallyPrecedes($0.group) : $0.group.lexicographicallyPrecedes($1.group)
            }
            for (index, left) in inOrder.enumerated() {
                for right in inOrder[(index + 1)...] where left.group != right.group {
                    #expect(!order.precedes(right.position, left.position), "\(all) \(definitions.map(\.text))")
                }
            }
        }
        // The test is worth something only if plans are common and exclude entries.
        #expect(
            planned > 80 && ordered > 20 && matches > 200 && excluded > 200,
            "\(planned) \(ordered) \(matches) \(excluded)")
    }

    @Test func theIndexWithTheMostEqualitiesWins() throws {
        let definitions = try [["a"], ["a", "b"], ["c"], ["b", "a"]].map {
            try IndexDefinition(QueryRun.words(["ON"] + $0))
        }
        func index(_ words: String...) throws -> [Int]? {
            let query = try Query(QueryRun.words(words))
            return IndexPlanner(definitions, query).plan(query)?.indexes
        }
        #expect(try index("WHERE", "a", "=", "1") == [0])
        #expect(try index("WHERE", "a", "=", "1", "AND", "b", "=", "1") == [1])
        #expect(try index("WHERE", "a", "=", "1", "AND", "b", ">", "1") == [1])
        #expect(try index("WHERE", "b", "=", "1", "AND", "a", ">", "1") == [3])
        #expect(try index("WHERE", "a", "=", "1", "AND", "c", ">", "1") == [0])
        #expect(try index("WHERE", "a", "=", "1", "SORT", "b") == [1])
        #expect(try index("SORT", "c", "DESC") == [2])
        #expect(try index("COUNT", "SORT", "c") == nil)
        #expect(try index("WHERE", "a", "=", "1", "OR", "c", "<", "5") == [0, 2])
        #expect(try index("WHERE", "a", "=", "1", "OR", "d", "<", "5") == nil)
        #expect(try index("WHERE", "a", "!=", "1") == nil)
        #expect(try index("WHERE", "a", "=", "JSON", "[1]") == nil)
        #expect(try index("WHERE", "a", "=", "1", "AND", "@key", "=", "x") == nil)
        #expect(try index() == nil)
    }
}
