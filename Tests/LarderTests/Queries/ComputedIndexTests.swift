import Foundation
import Larder
import LarderEngine
import LarderTestSupport
import Testing

/// Tests indexes of values that a closure computes.
@Suite(.timeLimit(.minutes(5))) struct ComputedIndexTests {
    struct Visit: Codable, Equatable, Sendable {
        var page: String
        var second: Int
        var words: [String] = []

        var day: Int { second / 100 }
    }

    private static let byDay = Index.computed("byDay", version: 1) { (visit: Visit) in [visit.day] }
    private static let byWord = Index.computed("byWord", version: 1) { (visit: Visit) in visit.words }
    private static let indexes = [Index(byDay), Index(byWord)]

    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private func open(
        _ name: String = "visits", _ indexes: [Index] = Self.indexes,
        _ change: (inout CacheOptions) -> Void = { _ in }
    ) throws -> Cache {
        try Cache(
            named: name, policy: .never, indexes: indexes, directory: workspace.directory,
            options: workspace.options(change))
    }

    private func isUsed(_ query: ModelQuery<Visit, Cache>) throws -> Bool {
        let text = try query.explain()
        #expect(text.contains("the computed index '"), "\(text)")
        let isUsed = text.contains(" is used (")
        #expect(isUsed != text.contains("no index is used"), "\(text)")
        return isUsed
    }

    private static func visits() -> [(key: String, visit: Visit)] {
        (0..<20).map { number in
            (String(format: "v%02d", number), Visit(page: number % 2 == 0 ? "/" : "/a", second: number * 50))
        }
    }

    /// Closes the larder, and checks its files.
    private func expectHealthyFiles(_ cache: Cache) throws {
        cache.close()
        #expect(try Engine.check(workspace.directory).problems.isEmpty)
    }

    private func fill(_ cache: Cache) throws { for (key, visit) in Self.visits() { try cache.set(visit, forKey: key) } }

    @Test func computedValuesFindModels() throws {
        let cache = try open()
        try fill(cache)
        let (all, byDay) = (cache.query(Visit.self), Self.byDay)
        for isOnDisk in [false, true] {
            if isOnDisk { try cache.sweep() }
            #expect(try all.where(byDay, 3).keys() == ["v06", "v07"])
            #expect(try all.where(byDay, 3).values().map(\.second) == [300, 350])
            #expect(try all.where(byDay, in: [9, 0, 77]).keys() == ["v00", "v01", "v18", "v19"])
            #expect(try all.where(byDay, in: []).keys().isEmpty)
            #expect(try all.where(byDay, 2..<4).keys() == ["v04", "v05", "v06", "v07"])
            #expect(try all.where(byDay, 2...3).count() == 4)
            #expect(try all.where(byDay, 8...).count() == 4 && all.where(byDay, ..<1).count() == 2)
            #expect(try all.where(byDay, ...1).count() == 4)
            #expect(try all.where(byDay, 3).where(\.page, "/").keys() == ["v06"])
            #expect(try all.where(byDay, 3).where(byDay, 4).count() == 0)
            #expect(try all.where(byDay, 3).filter { $0.second > 300 }.keys() == ["v07"])
            #expect(
                try all.where(byDay, 2...).sorted(by: \.second, .reverse).skip(1).limit(2).keys() == ["v18", "v17"])
            let groups = try all.where(byDay, 1...2).grouped(by: \.page, .count, .sum(\.second)).rows()
            #expect(groups.map(\.group) == ["/", "/a"] && groups.map(\.results.1) == [300, 400])
            #expect(try all.where(byDay, 3).select(\.page).rows() == ["/", "/a"])
            var (keys, cursor): ([String], String?) = ([], nil)
            repeat {
                let page = try all.where(byDay, 0...1).limit(1).page(after: cursor)
                (keys, cursor) = (keys + page.keys, page.cursor)
            } while cursor != nil
            #expect(keys == ["v00", "v01", "v02", "v03"])
            let other = try #require(try all.where(byDay, 0...1).limit(1).page().cursor)
            expectError(.invalidArgument) { _ = try all.where(byDay, 0...2).page(after: other) }
            #expect(try isUsed(all.where(byDay, 3)))
            #expect(
                try all.where(byDay, 3).explain()
                    .contains(" is used (ON @computed byDay version 1 of LarderTests.ComputedIndexTests.Visit as Int)"))
            #expect(try all.where(byDay, 3).explain().contains("2 candidates, 2 entries examined"))
            #expect(try all.where(byDay, 3..<4).explain().contains("4 candidates"), "up to the upper bound")
        }
        try cache.withSnapshot { snapshot in
            try cache.remove("v06")
            #expect(try snapshot.query(Visit.self).where(byDay, 3).keys() == ["v06", "v07"])
            #expect(try all.where(byDay, 3).keys() == ["v07"])
        }
        try expectHealthyFiles(cache)
    }

    @Test("values of several types are found: text, numbers, Booleans, dates, nil and enumerations")
    func valuesHaveSeveralTypes() throws {
        enum Part: String, Codable { case early, late }
        let date = Index.computed("date", version: 1) { (visit: Visit) in
            [Date(timeIntervalSince1970: Double(visit.second))]
        }
        let half = Index.computed("half", version: 1) { (visit: Visit) in [Double(visit.second) / 8, .infinity] }
        let root = Index.computed("root", version: 1) { (visit: Visit) in [visit.page == "/"] }
        let word = Index.computed("word", version: 1, prefix: "v0") { (visit: Visit) in [visit.words.first, "all"] }
        let part = Index.computed("part", version: 1) { (visit: Visit) in [visit.day < 5 ? Part.early : .late] }
        // The values do not depend on the codec, so that dates always have an order.
        let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
        encoder.dateEncodingStrategy = .iso8601
        decoder.dateDecodingStrategy = .iso8601
        let all = [Index(date), Index(half), Index(root), Index(word), Index(part)]
        let cache = try open("typed", all) { $0.codec = .json(encoder: encoder, decoder: decoder) }
        try fill(cache)
        try cache.set(Visit(page: "x", second: 0, words: ["w"]), forKey: "v0x")
        let query = cache.query(Visit.self)
        for found in [
            query.where(date, Date(timeIntervalSince1970: 100)),
            query.where(date, Date(timeIntervalSince1970: 51)..<Date(timeIntervalSince1970: 150)),
            query.where(half, 12.5), query.where(half, in: [12.5, -1]), query.where(half, 12...13),
        ] {
            #expect(try found.keys() == ["v02"] && isUsed(found))
        }
        #expect(try query.where(root, true).count() == 10)
        #expect(try query.where(part, .early).count() == 11 && query.where(part, in: [.late]).count() == 10)
        #expect(try query.where(word, nil).count() == 20, "also without the prefix")
        #expect(try query.where(keyPrefix: "v0").where(word, nil).count() == 10)
        #expect(try query.where(keyPrefix: "v0").where(word, in: ["w", "u"]).keys() == ["v0x"])
        #expect(try isUsed(query.where(keyPrefix: "v0").where(word, "w")) && !isUsed(query.where(word, "w")))
        expectError(.invalidArgument) { _ = try query.where(half, .nan).count() }
    }

    @Test("several values, none, repeated ones and more than 256 list an entry")
    func entriesHaveAnyNumberOfValues() throws {
        let cache = try open()
        let many = (0..<300).map { "w\($0)" }
        for (key, words) in [("a", ["x", "y", "x"]), ("b", []), ("c", many), ("d", ["", "\0", "y"])] {
            try cache.set(Visit(page: "/", second: 0, words: words), forKey: key)
        }
        let (all, byWord) = (cache.query(Visit.self), Self.byWord)
        for isOnDisk in [false, true] {
            if isOnDisk { _ = try cache.sweep() }
            #expect(try all.where(byWord, "y").keys() == ["a", "d"] && isUsed(all.where(byWord, "y")))
            #expect(try all.where(byWord, "x").count() == 1)
            #expect(try all.where(byWord, in: ["w299", "\0", "x", "y"]).keys() == ["a", "c", "d"])
            #expect(try all.where(byWord, "w"..<"x").keys() == ["c"], "both bounds are those of one value")
            #expect(try all.where(byWord, "w300").count() == 0)
            #expect(try all.where(byWord, ""...).keys() == ["a", "c", "d"])
        }
        try expectHealthyFiles(cache)
    }

    @Test("entries of other types have no values, and do not fail queries")
    func entriesThatCannotBeDecodedAreNotListed() throws {
        let cache = try open()
        try cache.set(["other": 1], forKey: "a")
        try cache.setBytes(Array("no JSON".utf8), forKey: "b")
        try cache.setBytes(Array(#"{"page":"/","second":310,"words":[]}"#.utf8), forKey: "c")
        try cache.set(Visit(page: "/", second: 305), forKey: "d")
        let found = cache.query(Visit.self).where(Self.byDay, 3)
        for isOnDisk in [false, true] {
            if isOnDisk { _ = try cache.sweep() }
            #expect(try found.keys() == ["c", "d"] && isUsed(found))
            #expect(try cache.query(Visit.self).count() == 3, "other queries find all entries")
            #expect(try cache.query([String: Int].self).where("other", 1).keys() == ["a"])
        }
        let keys = try cache.withSnapshot { try $0.query(Visit.self).where(Self.byDay, 3).keys() }
        #expect(keys == ["c", "d"])
        #expect(try cache.dropIndexes(except: []) == 2)
        #expect(try found.keys() == ["c", "d"] && !isUsed(found))
    }

    @Test("an index with the same version is kept by a restart, one with another version is built anew")
    func versionsDecideWhetherAnIndexIsBuiltAnew() throws {
        let first = try open()
        try fill(first)
        _ = try first.sweep()
        first.close()
        let second = try open()
        #expect(try isUsed(second.query(Visit.self).where(Self.byDay, 3)))
        try second.set(Visit(page: "/", second: 399), forKey: "new")
        #expect(try second.query(Visit.self).where(Self.byDay, 3).keys() == ["new", "v06", "v07"])
        second.close()
        let hours = Index.computed("byDay", version: 2) { (visit: Visit) in [visit.second / 50] }
        let third = try open("visits", [Index(hours)])
        let found = third.query(Visit.self).where(hours, 3)
        #expect(try found.keys() == ["v03"] && !isUsed(found))
        #expect(try third.query(Visit.self).where(Self.byDay, 3).keys() == ["new", "v06", "v07"])
        _ = try third.sweep()
        #expect(try found.keys() == ["v03"] && isUsed(found))
        #expect(try !isUsed(third.query(Visit.self).where(Self.byDay, 3)), "the index has another version")
        third.close()
        // So is one with values of another type.
        let texts = Index.computed("byDay", version: 2) { (visit: Visit) in ["\(visit.second / 50)"] }
        let fourth = try open("visits", [Index(texts)])
        let other = fourth.query(Visit.self).where(texts, "3")
        #expect(try other.keys() == ["v03"] && !isUsed(other))
        _ = try fourth.sweep()
        #expect(try other.keys() == ["v03"] && isUsed(other))
        try expectHealthyFiles(fourth)
    }

    @Test("a process that does not declare an index makes it incomplete, and the next declaration completes it")
    func anIndexIsCompletedAfterAProcessWithoutIt() throws {
        let first = try open()
        try fill(first)
        _ = try first.sweep()
        first.close()
        for checkpoints in [false, true] {
            let other = try open("visits", [])
            let key = "other-\(checkpoints)"
            try other.set(Visit(page: "/", second: 310), forKey: key)
            let found = other.query(Visit.self).where(Self.byDay, 3)
            #expect(try found.keys().contains(key) && !isUsed(found))
            if checkpoints { _ = try other.sweep() }
            try other.set(Visit(page: "/", second: 311), forKey: key + "-late")
            let expected = try found.keys()
            // The other index is not declared yet.
            try other.declareIndexes([Index(Self.byDay)])
            #expect(try found.keys() == expected && expected.contains(key + "-late"))
            #expect(try isUsed(found) != checkpoints, "records were written without their hints")
            _ = try other.sweep()
            #expect(try found.keys() == expected && isUsed(found))
            #expect(try !isUsed(other.query(Visit.self).where(Self.byWord, "x")))
            other.close()
        }
        let last = try open()
        #expect(try isUsed(last.query(Visit.self).where(Self.byDay, 3)))
        _ = try last.sweep()
        #expect(try isUsed(last.query(Visit.self).where(Self.byWord, "x")))
        try expectHealthyFiles(last)
    }

    @Test func theFirstClosureOfAVersionIsUsed() throws {
        let cache = try open()
        let other = Index.computed("byDay", version: 1) { (visit: Visit) in [-visit.day] }
        try open("visits", [Index(other)]).close()
        try fill(cache)
        #expect(try cache.query(Visit.self).where(Self.byDay, 3).keys() == ["v06", "v07"])
        // The same name in another database is another index.
        let second = try open("second", [Index(other)])
        try fill(second)
        #expect(try second.query(Visit.self).where(other, -3).keys() == ["v06", "v07"])
        #expect(try isUsed(second.query(Visit.self).where(other, -3)))
    }

    @Test("purged, expired and overwritten entries are not found") func endedEntriesAreNotFound() throws {
        let cache = try open()
        try fill(cache)
        _ = try cache.sweep()
        let found = cache.query(Visit.self).where(Self.byDay, 3)
        try cache.set(Visit(page: "/", second: 300), forKey: "short", policy: .seconds(5))
        #expect(try found.keys() == ["short", "v06", "v07"])
        workspace.time.advance(milliseconds: 6_000)
        #expect(try found.keys() == ["v06", "v07"])
        try cache.set(Visit(page: "/", second: 0), forKey: "v06")
        #expect(try found.keys() == ["v07"])
        _ = try cache.removeAll()
        #expect(try found.keys().isEmpty)
        try fill(cache)
        #expect(try found.keys() == ["v06", "v07"] && isUsed(found))
    }

    @Test func asynchronousCallsReturnTheSame() async throws {
        let cache = try await Cache(
            named: "visits", policy: .never, indexes: Self.indexes, directory: workspace.directory,
            options: workspace.options())
        for (key, visit) in Self.visits() { try await cache.set(visit, forKey: key) }
        let found = cache.query(Visit.self).where(Self.byDay, 3)
        #expect(try await found.keys() == ["v06", "v07"])
        #expect(try await found.limit(1).page().cursor != nil)
        let sorted = cache.query(Visit.self).sorted(by: Self.byDay, .reverse)
        #expect(try await sorted.limit(3).keys() == ["v18", "v19", "v16"])
        #expect(try await sorted.count() == 20)
        #expect(try await found.explain().contains("the index byDay-"))
        for (query, text) in [(found, "the computed index 'byDay'"), (sorted, "sorted by a computed index")] {
            let live = cache.live(query)
            let error = await #expect(throws: LarderError.self) { for try await _ in live {} }
            #expect(error?.message.contains(text) == true)
        }
    }

    @Test func impossibleCallsAreExplained() throws {
        let cache = try open()
        let other = Index.computed("byDay", version: 2) { (visit: Visit) in [visit.day] }
        let twice = expectError(.invalidArgument) { try cache.declareIndexes([Index(Self.byDay), Index(other)]) }
        #expect(twice.contains("'byDay' is declared in two ways"), "\(twice)")
        let texts = Index.computed("byDay", version: 1) { (visit: Visit) in ["\(visit.day)"] }
        expectError(.invalidArgument) { try cache.declareIndexes([Index(Self.byDay), Index(texts)]) }
        try cache.declareIndexes([Index(Self.byDay), Index(Self.byDay)])
        for name in ["", "a b", "é", String(repeating: "a", count: 49)] {
            let index = Index.computed(name, version: 1) { (visit: Visit) in [visit.day] }
            expectError(.invalidArgument) { try cache.declareIndexes([Index(index)]) }
        }
        expectError(.invalidArgument) {
            _ = try cache.query(Visit.self).where("@computed byDay version 1", 3).count()
        }
        let lists = try workspace.cache("lists") { $0.codec = .propertyList }
        let sorted = cache.query(Visit.self).sorted(by: Self.byDay)
        expectError(.invalidArgument) { _ = try sorted.grouped(by: \.page, .count).rows() }
        let text = expectError(.invalidArgument) { try lists.declareIndexes(Self.indexes) }
        #expect(text.contains("stored as JSON"))
    }

    @Test("without the index, all entries are examined in pages, as with filter") func undeclaredIndexesAreNotNeeded()
        throws
    {
        let cache = try Cache.inMemory()
        let batch = cache.makeBatch()
        for number in 0...3_000 { try batch.setBytes(Array("{}".utf8), forKey: "\(number)") }
        try cache.apply(batch)
        let found = cache.query(Visit.self).where(Self.byDay, 3)
        let sorted = cache.query(Visit.self).sorted(by: Self.byDay)
        #expect(try found.count() == 0 && sorted.count() == 0 && sorted.keys().isEmpty)
        try cache.set(Visit(page: "/", second: 300), forKey: "x")
        try cache.set(Visit(page: "/", second: 200), forKey: "y")
        #expect(try found.count() == 1 && sorted.keys() == ["y", "x"] && !sorted.explain().contains(" is used ("))
    }

    @Test("indexes of one name and version of two models are different ones")
    func modelsHaveIndexesOfTheirOwn() throws {
        struct Order: Codable, Sendable { var total: Int }
        let byTotal = Index.computed("byDay", version: 1) { (order: Order) in [order.total] }
        for isSecond in [false, true] {
            let cache = try open("visits", [Index(Self.byDay)])
            try cache.declareIndexes([Index(byTotal)])
            if !isSecond {
                try fill(cache)
                try cache.set(Order(total: 3), forKey: "o")
            }
            let orders = cache.query(Order.self).where(byTotal, 3)
            let visits = cache.query(Visit.self).where(Self.byDay, 3)
            for isOnDisk in [false, true] {
                if isOnDisk { _ = try cache.sweep() }
                #expect(try visits.keys() == ["v06", "v07"] && isUsed(visits))
                let text = try orders.explain()
                #expect(try orders.keys() == ["o"] && text.contains(" is used ("), "\(text)")
                #expect(
                    text.contains("version 1 of LarderTests.ComputedIndexTests.Order as Int)"),
                    "the same in every process: \(text)")
            }
            if isSecond {
                #expect(try cache.dropIndexes(except: [Index(Self.byDay)]) == 1)
                #expect(try visits.keys() == ["v06", "v07"] && isUsed(visits))
                try expectHealthyFiles(cache)
            }
            cache.close()
        }
    }

    @Test func privateModelsOfOneNameAreRefused() throws {
        let cache = try Cache.inMemory()
        func first() throws {
            struct Twin: Codable, Sendable { var total: Int }
            let index = Index.computed("twin", version: 1) { (twin: Twin) in [twin.total] }
            try cache.declareIndexes([Index(index)])
            try cache.set(Twin(total: 3), forKey: "a")
            #expect(try cache.query(Twin.self).where(index, 3).keys() == ["a"])
        }
        func second() throws {
            struct Twin: Codable, Sendable { var count: Int }
            let index = Index.computed("twin", version: 1) { (twin: Twin) in [twin.count] }
            let query = cache.query(Twin.self)
            for call in [
                { try cache.declareIndexes([Index(index)]) }, { _ = try query.where(index, 3).keys() },
                { _ = try query.sorted(by: index).keys() },
            ] {
                let error = #expect(throws: LarderError.self) { try call() }
                #expect(error?.code == .invalidArgument && error?.message.contains("rename one of them") == true)
            }
        }
        try first()
        try second()
    }

    // MARK: Orders

    @Test func computedValuesSortModels() throws {
        let cache = try open()
        try fill(cache)
        try cache.set(["other": 1], forKey: "a")
        try cache.set(Visit(page: "/", second: 100, words: ["x", "b"]), forKey: "many")
        try cache.set(Visit(page: "/", second: 100, words: ["c"]), forKey: "one")
        let (all, byDay, byWord) = (cache.query(Visit.self), Self.byDay, Self.byWord)
        let latest = all.sorted(by: byDay, .reverse)
        for isOnDisk in [false, true] {
            if isOnDisk { _ = try cache.sweep() }
            #expect(try latest.limit(3).keys() == ["v18", "v19", "v16"])
            #expect(try all.sorted(by: byDay).limit(5).keys() == ["v00", "v01", "many", "one", "v02"])
            #expect(try latest.skip(1).limit(2).values().map(\.second) == [950, 800])
            #expect(try latest.count() == 22 && latest.limit(7).count() == 7 && latest.keys().count == 22)
            // Entries without values, and those that cannot be decoded, are left out.
            #expect(try all.sorted(by: byWord).keys() == ["many", "one"])
            #expect(try all.sorted(by: byWord, .reverse).keys() == ["many", "one"], "by its largest value")
            #expect(try all.sorted(by: byWord).count() == 2)
            #expect(try latest.where(byDay, 2..<4).keys() == ["v06", "v07", "v04", "v05"])
            #expect(try latest.where(byDay, 3).keys() == ["v06", "v07"])
            #expect(try latest.where(\.page, "/").limit(2).keys() == ["v18", "v16"])
            #expect(try latest.filter { $0.second < 300 }.limit(2).keys() == ["v04", "v05"])
            #expect(try latest.sorted(by: \.second, .reverse).limit(2).keys() == ["v19", "v18"])
            #expect(try all.sorted(by: \.page).sorted(by: byDay, .reverse).limit(1).keys() == ["v18"])
            #expect(try latest.limit(2).select(\.second).rows() == [900, 950])
            var (keys, cursor): ([String], String?) = ([], nil)
            repeat {
                let page = try latest.limit(3).page(after: cursor)
                (keys, cursor) = (keys + page.keys, page.cursor)
            } while cursor != nil
            #expect(try keys == latest.keys() && Set(keys).count == 22)
            let text = try latest.limit(2).explain()
            #expect(
                text.contains("the index byDay-") && text.contains("the order of the index: @computed byDay"), "\(text)"
            )
            #expect(!text.contains("22 candidates"), "\(text)")
            #expect(try all.sorted(by: byDay).limit(2).explain().contains("the order of the index"))
        }
        let keys = try cache.withSnapshot { try $0.query(Visit.self).sorted(by: byDay, .reverse).limit(3).keys() }
        #expect(keys == ["v18", "v19", "v16"])
        #expect(try all.sorted(by: byWord).remove() == 2 && latest.count() == 20)
        try cache.dropIndexes(except: [])
        let text = try latest.limit(2).explain()
        #expect(text.contains("no index is used") && text.contains("are sorted by @computed byDay"), "\(text)")
        #expect(try latest.limit(3).keys() == ["v18", "v19", "v16"] && latest.count() == 20)
        try expectHealthyFiles(cache)
    }

    @Test func salvageBuildsTheIndexAnew() throws {
        let cache = try open()
        try fill(cache)
        _ = try cache.sweep()
        cache.close()
        let database = workspace.directory + "/visits"
        let epoch = try #require(
            try FileManager.default.contentsOfDirectory(atPath: database).first { UInt64($0) != nil })
        try Data("MANIFEST-009999\n".utf8).write(to: URL(fileURLWithPath: "\(database)/\(epoch)/CURRENT"))
        expectError(.damaged) { _ = try open() }
        #expect(try Cache.salvage(named: "visits", directory: workspace.directory).entries == 20)
        let again = try open()
        let found = again.query(Visit.self).where(Self.byDay, 3)
        #expect(try found.keys() == ["v06", "v07"])
        _ = try again.sweep()
        #expect(try found.keys() == ["v06", "v07"] && isUsed(found))
    }

    // MARK: Golden files

    struct Shop: Codable, Sendable {
        var at: [Double]
        var name: String
    }

    /// Opens files with an index of places and a computed index. `LARDER_MAKE_GOLDEN=name swift test --filter
    /// ComputedIndexTests` creates a new directory.
    @Test func indexesOfEarlierVersionsAreRead() throws {
        let golden = PackageRoot.path + "/Tests/LarderEngineTests/Golden/"
        let byLetter = Index.computed("byLetter", version: 7, prefix: "s:") { (shop: Shop) in
            shop.name.map { "\($0)" }
        }
        let all = [Index(geo: \Shop.at), Index(byLetter)]
        if let name = TestSetting.makeGolden.text {
            let cache = try open("shops", all)
            try cache.set(Shop(at: [13.4, 52.5], name: "ab"), forKey: "s:1")
            try cache.set(Shop(at: [179.9, 10], name: ""), forKey: "s:2")
            _ = try cache.sweep()
            try cache.set(Shop(at: [13.5, 52.6], name: "bc"), forKey: "s:3")
            cache.close()
            for file in try Files.sizes(below: workspace.directory).keys
            where ["LOCK", "LOG", "LOG.old"].contains(file.split(separator: "/").last ?? "") {
                try Files.remove(file)
            }
            try #require(!FileManager.default.fileExists(atPath: golden + name))
            try Files.copy(workspace.directory, to: golden + name)
            return
        }
        try Files.copy(golden + "model-indexes", to: workspace.directory)
        let shops = try open("shops", all)
        let near = shops.query(Shop.self).where(\.at, near: [13.4, 52.5], within: 50_000)
        #expect(try near.keys() == ["s:1", "s:3"] && near.explain().contains(" is used (GEO ON at)"))
        let found = shops.query(Shop.self).where(keyPrefix: "s:").where(byLetter, "b")
        #expect(try found.keys() == ["s:1", "s:3"])
        // The definition does not name the model, so the index is built anew.
        _ = try shops.sweep()
        #expect(try shops.dropIndexes(except: all) == 0, "the old index was dropped")
        let text = try found.explain()
        #expect(try found.keys() == ["s:1", "s:3"])
        #expect(
            text.contains(
                "used (PREFIX s: ON @computed byLetter version 7 of LarderTests.ComputedIndexTests.Shop as String)"),
            "\(text)")
        #expect(text.contains("2 candidates"), "\(text)")
        shops.close()
        #expect(try Engine.check(workspace.directory).problems.isEmpty)
    }

    // MARK: Random histories

    /// Compares queries with a dictionary. For a long run: `LARDER_ROUNDS=2000 swift test --filter ComputedIndexTests`.
    @Test func queriesAgreeWithADictionary() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        var model: [String: (visit: Visit?, until: Int64)] = [:]
        var now: Int64 = 0
        var version = 1
        var index = Self.index(version)
        var cache = try open("visits", [Index(index)])
        var isDeclared = true
        for round in 0..<(TestSetting.rounds.number() ?? 150) {
            for _ in 0..<random.below(12) {
                let key = "k\(random.below(40))"
                let words = (0..<[0, 1, 2, 3, 300][random.below(5)]).map { "w\($0 * 7 % 11)\($0 > 50 ? "-\($0)" : "")" }
                let visit = Visit(page: "/", second: random.below(1200), words: words)
                switch random.below(10) {
                case 0:
                    try cache.remove(key)
                    model[key] = nil
                case 1:
                    try cache.set(["x": round], forKey: key)
                    model[key] = (nil, .max)
                case 2:
                    let seconds = 1 + random.below(60)
                    try cache.set(visit, forKey: key, policy: .seconds(Double(seconds)))
                    model[key] = (visit, now + Int64(seconds) * 1000)
                default:
                    try cache.set(visit, forKey: key)
                    model[key] = (visit, .max)
                }
            }
            switch random.below(10) {
            case 0: _ = try cache.sweep()
            case 1, 2:
                cache.close()
                if random.below(4) == 0 { version += 1 }
                index = Self.index(version)
                isDeclared = random.below(3) > 0
                cache = try open("visits", isDeclared ? [Index(index)] : [])
            case 3 where !isDeclared:
                try cache.declareIndexes([Index(index)])
                isDeclared = true
            case 4:
                let milliseconds = Int64(random.below(40_000))
                workspace.time.advance(milliseconds: milliseconds)
                now += milliseconds
            default: break
            }
            let fresh = model.filter { $0.value.until > now }.compactMapValues { $0.visit }
            func keys(_ matches: (Int) -> Bool) -> [String] {
                fresh.filter { Self.values($0.value, version).contains(where: matches) }.map(\.key).sorted()
            }
            let (all, value, isReverse) = (cache.query(Visit.self), random.below(14), random.below(2) == 0)
            let comment: Comment = "seed \(seed), round \(round)"
            let sorted = all.sorted(by: index, isReverse ? .reverse : .forward)
            let firsts = fresh.compactMapValues { visit in
                let values = Self.values(visit, version)
                return isReverse ? values.max().map { -$0 } : values.min()
            }
            let order = firsts.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map(\.key)
            let count = 1 + random.below(15)
            var (pages, cursor): ([String], String?) = ([], nil)
            repeat {
                let page = try sorted.limit(count).page(after: cursor)
                (pages, cursor) = (pages + page.keys, page.cursor)
            } while cursor != nil
            #expect(try pages == order && sorted.count() == order.count, comment)
            #expect(
                try sorted.where(index, value...).limit(count).keys()
                    == Array(order.filter(Set(keys { $0 >= value }).contains).prefix(count)), comment)
            #expect(
                try sorted.where(index, value).where(\.second, ..<900).keys()
                    == order.filter { key in fresh[key].map { $0.second < 900 } ?? false }
                    .filter(Set(keys { $0 == value }).contains), comment)
            #expect(try all.where(index, value).keys() == keys { $0 == value }, comment)
            #expect(try all.where(index, in: [value, 3]).count() == keys { $0 == value || $0 == 3 }.count, comment)
            #expect(
                try all.where(index, value..<(value + 3)).keys() == keys { (value..<(value + 3)).contains($0) }, comment
            )
            #expect(
                try all.where(index, ...value).where(\.second, 600...).keys()
                    == keys { $0 <= value }.filter { fresh[$0].map { $0.second >= 600 } ?? false }, comment)
        }
        cache.close()
        #expect(try Engine.check(workspace.directory).problems.isEmpty)
    }

    private static func values(_ visit: Visit, _ version: Int) -> [Int] {
        (visit.day % 5 == 0 ? [] : [visit.day * version % 12])
            + visit.words.map { $0.utf8.reduce(0) { ($0 + Int($1) * version) % 13 } }
    }

    private static func index(_ version: Int) -> ComputedIndex<Visit, Int> {
        Index.computed("random", version: version) { (visit: Visit) in values(visit, version) }
    }
}
