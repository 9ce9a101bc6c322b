import LarderQueries
import LarderTestSupport
import Testing

/// Compares random queries on random documents with an evaluator of trees that shares no code with them.
@Suite struct QueryOracleTests {
    @Test func conditionsHoldAsOnTrees() throws {
        var random = SeededGenerator(seed: testSeed())
        var held = 0
        for _ in 0..<2000 {
            let condition = OracleCondition.random(&random)
            for _ in 0..<20 {
                let tree = QueryTree.object(&random)
                let key = QueryTree.texts.randomElement(using: &random) ?? ""
                let entry = QueryRun.Entry(key: key, text: tree.json(&random))
                let expected = condition.holds(tree, key)
                held += expected ? 1 : 0
                let found = try QueryRun.matches(condition.words, entry)
                #expect(found == expected, "\(condition.words) on \(entry.text), key \(key)")
            }
        }
        // The cases are worth something only if many conditions hold and many do not.
        #expect((8000...32_000).contains(held), "\(held)")
    }

    @Test func pagesFollowTheOrderOfTrees() throws {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<300 {
            let trees = (0..<random.below(40)).map { ("k\($0)", QueryTree.object(&random)) }
            let entries = trees.map { QueryRun.Entry(key: $0.0, text: $0.1.json(&random)) }
            let sort: [(path: String, descending: Bool)] = ["a", "b", "a.b"].shuffled(using: &random)
                .prefix(random.below(4)).map { ($0, random.oneIn(2)) }
            let sortWords =
                sort.isEmpty ? [] : ["SORT"] + sort.flatMap { $0.descending ? [$0.path, "DESC"] : [$0.path] }
            let condition = OracleCondition.random(&random)
            let expected = trees.filter { condition.holds($0.1, $0.0) }.sorted { left, right in
                for (path, descending) in sort {
                    let order = QueryTree.order(
                        QueryTree.sortValue(left.1[path], descending: descending),
                        QueryTree.sortValue(right.1[path], descending: descending))
                    if order != 0 { return (order < 0) != descending }
                }
                return left.0.utf8.lexicographicallyPrecedes(right.0.utf8)
            }.map(\.0)
            let query = ["KEYS", "WHERE"] + condition.words + sortWords
            #expect(try QueryRun.keys(query, entries).keys == expected, "\(query)")
            // The same in pages, each from its own shuffled list of entries.
            var paged: [String] = []
            var cursor: String?
            repeat {
                let limit = 1 + random.below(9)
                let page = try QueryRun.keys(
                    query + ["LIMIT", "\(limit)"] + (cursor.map { ["AFTER", $0] } ?? []),
                    entries.shuffled(using: &random))
                #expect(page.keys.count <= limit)
                paged += page.keys
                cursor = page.cursor
            } while cursor != nil
            #expect(paged == expected, "\(query)")
            let (skip, limit) = (random.below(10), random.below(10))
            let part = try QueryRun.keys(query + ["SKIP", "\(skip)", "LIMIT", "\(limit)"], entries).keys
            #expect(part == Array(expected.dropFirst(skip).prefix(limit)), "\(query)")
        }
    }

    @Test func groupsAreThoseOfTrees() throws {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<300 {
            let trees = (0..<random.below(40)).map { _ in QueryTree.object(&random) }
            let entries = trees.enumerated().map { QueryRun.Entry(key: "\($0)", text: $1.json(&random)) }
            var groups: [(value: QueryTree, count: Int, numbers: [QueryTree])] = []
            for tree in trees {
                guard let value = tree["a"] else { continue }
                var distinct: [QueryTree] = []
                for element in value.elements where !distinct.contains(where: { QueryTree.isEqual($0, element) }) {
                    distinct.append(element)
                }
                for element in distinct {
                    let index = groups.firstIndex { QueryTree.isEqual($0.value, element) } ?? groups.count
                    if index == groups.count { groups.append((element, 0, [])) }
                    groups[index].count += 1
                    if let number = tree["b"], number.type == 3 { groups[index].numbers.append(number) }
                }
            }
            let found = try QueryRun.groups(["GROUP", "a", "COUNT", "MIN", "b", "MAX", "b"], entries)
            #expect(found.count == groups.count)
            var last: QueryTree?
            for row in found {
                // Finds the group by a query for its own JSON.
                let matching = try groups.filter { group in
                    let operand = "{\"v\":" + group.value.json(&random) + "}"
                    return try QueryRun.matches("a", "=", "JSON", operand, in: "{\"a\":{\"v\":\(row[0])}}")
                }
                let group = try #require(matching.first)
                #expect(matching.count == 1 && row[1] == "\(group.count)")
                if let last { #expect(QueryTree.order(last, group.value) <= 0) }
                last = group.value
                let ordered = group.numbers.sorted { QueryTree.order($0, $1) < 0 }
                for (column, number) in [(2, ordered.first), (3, ordered.last)] {
                    let text = number.map { $0.json(&random) } ?? "null"
                    #expect(
                        try QueryRun.matches("x", "=", "JSON", text, in: "{\"x\":\(row[column])}"), "\(row) \(text)")
                }
            }
        }
    }
}
