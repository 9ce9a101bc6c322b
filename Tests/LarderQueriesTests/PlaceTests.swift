import Foundation
import LarderTestSupport
import Testing

@testable import LarderQueries

/// Tests NEAR and WITHIN, their order, and the index of places, with formulas that share no code with them.
@Suite struct PlaceTests {
    struct Place {
        let longitude: Double
        let latitude: Double

        var queried: QueryPlace {
            get throws { try #require(QueryPlace(longitude: longitude, latitude: latitude)) }
        }

        /// The distance in meters by the angle between two vectors.
        func distance(to other: Place) -> Double {
            let (left, right) = (vector, other.vector)
            let cross = (
                left.y * right.z - left.z * right.y, left.z * right.x - left.x * right.z,
                left.x * right.y - left.y * right.x
            )
            let sine = (cross.0 * cross.0 + cross.1 * cross.1 + cross.2 * cross.2).squareRoot()
            return 6_372_797.560856 * atan2(sine, left.x * right.x + left.y * right.y + left.z * right.z)
        }

        private var vector: (x: Double, y: Double, z: Double) {
            let (across, up) = (longitude * .pi / 180, latitude * .pi / 180)
            return (cos(up) * cos(across), cos(up) * sin(across), sin(up))
        }

        /// Everywhere, at the edges of the map, or close to a few points.
        static func random(_ random: inout SeededGenerator) -> Place {
            switch random.below(4) {
            case 0: return uniform(&random)
            case 1:
                return Place(
                    longitude: [-180, 180, 0, 13.4, 179.99999, -179.99999][random.below(6)],
                    latitude: [-90, 90, 0, 52.5, 89.99999, -89.99999][random.below(6)])
            default:
                let (longitude, latitude) = [(180, 10), (-180, -65), (13.4, 52.5), (0, 0), (77, 90), (-20, -90)][
                    random.below(6)]
                let spread = exp(Double.random(in: log(1e-6)...log(20), using: &random))
                let east = longitude + Double.random(in: -spread...spread, using: &random)
                return Place(
                    longitude: east > 180 ? east - 360 : east < -180 ? east + 360 : east,
                    latitude: min(90, max(-90, latitude + .random(in: -spread...spread, using: &random))))
            }
        }

        static func uniform(_ random: inout SeededGenerator) -> Place {
            Place(longitude: .random(in: -180...180, using: &random), latitude: .random(in: -90...90, using: &random))
        }
    }

    private static func places(_ count: Int, _ random: inout SeededGenerator) -> [Place] {
        (0..<count).map { _ in Place.random(&random) }
    }

    private static func condition(_ words: [String]) throws -> Query { try Query(QueryRun.words(["WHERE"] + words)) }

    // MARK: Cells

    @Test("each place in a circle, from a meter to half the earth, is a candidate") func circlesAreCovered() throws {
        var random = SeededGenerator(seed: testSeed())
        let places = Self.places(20_000, &random)
        let cells = try places.map { ($0, try $0.queried, try $0.queried.cell) }
        var (inside, excluded) = (0, 0)
        for _ in 0..<100 {
            let center = Place.random(&random)
            let meters = exp(Double.random(in: 0...log(2e7), using: &random))
            let test = QueryTest.near(try center.queried, meters: meters)
            let ranges = PlaceCells.ranges(covering: try #require(test.box))
            #expect(ranges.count <= PlaceCells.rangesMax)
            #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
            for (place, queried, cell) in cells {
                let distance = place.distance(to: center)
                let isCandidate = ranges.contains { $0.contains(cell) }
                let found = try center.queried.distance(to: queried)
                // Of opposite places, the haversine formula knows the distance to a fraction of a meter.
                #expect(abs(found - distance) < 0.5, "\(place) \(center)")
                if found <= meters {
                    inside += 1
                    #expect(isCandidate, "\(place) \(center) \(meters)")
                } else if !isCandidate {
                    excluded += 1
                }
            }
        }
        #expect(inside > 10_000 && excluded > 500_000, "\(inside) \(excluded)")
    }

    @Test("each place in a box is a candidate, also across the 180th meridian") func boxesAreCovered() throws {
        var random = SeededGenerator(seed: testSeed())
        let places = Self.places(2000, &random)
        let cells = try places.map { ($0, try $0.queried, try $0.queried.cell) }
        func turn(_ degrees: Double) -> Double { (degrees + 720).truncatingRemainder(dividingBy: 360) }
        var (inside, crossing, excluded) = (0, 0, 0)
        for _ in 0..<400 {
            let (west, east) = (Place.random(&random), Place.random(&random))
            let box = QueryBox(try west.queried, try east.queried)
            let ranges = PlaceCells.ranges(covering: box)
            #expect(ranges.count <= PlaceCells.rangesMax)
            let isWhole = west.longitude == -180 && east.longitude == 180
            let width = turn(east.longitude - west.longitude)
            let parallels = min(west.latitude, east.latitude)...max(west.latitude, east.latitude)
            for (place, queried, cell) in cells {
                let isExpected =
                    parallels.contains(place.latitude)
                    && (isWhole || turn(place.longitude - west.longitude) <= width
                        || turn(place.longitude) == turn(east.longitude))
                #expect(box.contains(queried) == isExpected, "\(place) \(west) \(east)")
                let isCandidate = ranges.contains { $0.contains(cell) }
                #expect(isCandidate || !isExpected, "\(place) \(west) \(east)")
                inside += isExpected ? 1 : 0
                crossing += isExpected && west.longitude > east.longitude ? 1 : 0
                excluded += isCandidate ? 0 : 1
            }
        }
        #expect(inside > 10_000 && crossing > 1000 && excluded > 10_000, "\(inside) \(crossing) \(excluded)")
    }

    @Test func fewCellsAreOutsideTheCircle() throws {
        var random = SeededGenerator(seed: testSeed())
        var (cells, circles) = (0.0, 0.0)
        for _ in 0..<200 {
            let center = try Place(
                longitude: .random(in: -170...170, using: &random), latitude: .random(in: -60...60, using: &random)
            ).queried
            let meters = exp(Double.random(in: log(1e3)...log(5e5), using: &random))
            let box = QueryBox(around: center, meters: meters)
            circles += (box.east - box.west) / 360 * (box.north - box.south) / 180 * .pi / 4
            cells += PlaceCells.ranges(covering: box).reduce(0) { $0 + Double($1.upperBound - $1.lowerBound) } / 0x1p64
        }
        #expect(cells < 3 * circles, "\(cells / circles)")
    }

    @Test("cells come from the nearest to the farthest, and have all places between two distances")
    func nearestCellsHaveAllPlacesOfARing() throws {
        var random = SeededGenerator(seed: testSeed())
        let places = Self.places(500, &random)
        var (inside, passedOver) = (0, 0)
        for _ in 0..<300 {
            let center = Place.random(&random)
            let meters = exp(Double.random(in: log(1)...log(2.1e7), using: &random))
            let nearest = random.oneIn(3) ? 0 : Double.random(in: 0...1, using: &random) * meters
            var cells = NearestCells(around: try center.queried, meters: meters, after: nearest)
            var found: [ClosedRange<UInt64>] = []
            var divisions = 0
            while let (next, terms) = cells.next(upTo: nil) {
                divisions += 1
                if divisions < 200, next.freeBits > 20, cells.divide(next) { continue }
                #expect(
                    terms.contains(IndexTerms.term(of: next.first)) && terms.contains(IndexTerms.term(of: next.last)))
                found.append(next.first...next.last)
            }
            for place in places {
                let (distance, cell) = (place.distance(to: center), try place.queried.cell)
                let isFound =
                    IndexTerms.term(of: cell).withUnsafeBytes { cells.contains($0) }
                    && found.contains { $0.contains(cell) }
                if (nearest...meters).contains(distance) {
                    inside += 1
                    #expect(isFound, "\(place) \(center) \(nearest) \(meters)")
                } else if !isFound {
                    passedOver += 1
                }
            }
        }
        #expect(inside > 5_000 && passedOver > 50_000, "\(inside) \(passedOver)")
    }

    // MARK: Definitions and plans

    @Test func definitionsOfEachKindHaveTheirBytes() throws {
        let path: [UInt8] = [1, 0, 0, 0, 0, 2] + Array("at".utf8)
        let values = try IndexDefinition(QueryRun.words(["PREFIX", "b", "ON", "at"]))
        #expect(values.bytes == [1, 0, 0, 0, 1, 0x62] + path)
        // Earlier versions know only definitions that begin with 1.
        let places = try IndexDefinition(QueryRun.words(["PREFIX", "b", "geo", "ON", "at"]))
        #expect(places.bytes == [2, 0, 0, 0, 1, 0x62] + path)
        for definition in [values, places] { #expect(IndexDefinition(bytes: definition.bytes) == definition) }
        #expect(places.text == "PREFIX b GEO ON at" && places.paths == ["at GEO"] && values.paths == ["at"])
        for unknown in [0, 3, 255] as [UInt8] {
            #expect(IndexDefinition(bytes: [unknown] + values.bytes.dropFirst()) == nil)
        }
        // A distance is an order of rows, but not of an index.
        var distance: [UInt8] = [1, 0, 0, 0, 0]
        distance.append(try Self.condition(["at", "NEAR", "1", "2", "3", "m"]).order)
        #expect(IndexDefinition(bytes: distance) == nil)
        for wrong in [["at DESC"], ["b", "at GEO"], ["at", "DESC", "a.b DESC", "DESC"]] {
            #expect {
                try IndexDefinition(QueryRun.words(["ON"] + wrong))
            } throws: { error in
                (error as? QueryError)?.text.hasSuffix("lists of indexes write DESC and GEO after a name") ?? false
            }
        }
        for wrong in [["at", "DESC"], ["at", "b"], ["@stored"], ["@key"]] {
            #expect(throws: QueryError.self) { try IndexDefinition(QueryRun.words(["GEO", "ON"] + wrong)) }
        }
    }

    @Test func placesHaveTheTermsOfTheirCells() throws {
        let definition = try IndexDefinition(QueryRun.words(["GEO", "ON", "at"]))
        func terms(_ text: String) throws -> [[UInt8]] {
            try QueryRun.with(.init(key: "k", text: "{\"at\":\(text)}")) { document, facts in
                var terms: [[UInt8]] = []
                IndexTerms.forEach(of: document, facts, definition) { terms.append($0) }
                return terms
            }
        }
        #expect(try terms("[-180,-90]") == [[UInt8](repeating: 0, count: 9)])
        #expect(try terms("[180,90]") == [[0] + [UInt8](repeating: 255, count: 8)])
        #expect(try terms("[0,-90]") == [[0, 0x80] + [UInt8](repeating: 0, count: 7)])
        #expect(try terms(#"{"lng":-180,"latitude":0}"#) == [[0, 0x40] + [UInt8](repeating: 0, count: 7)])
        #expect(try terms("[[1,2],\"x\",[1,2,3],{\"lon\":3,\"lat\":4}]").count == 2)
        for text in ["[200,0]", "[1e999,0]", "\"[1,2]\"", "[\"1\",2]", "null", "[]", "{}", "[[0,91]]", "5"] {
            #expect(try terms(text).isEmpty, "\(text)")
        }
        let many = (0...256).map { _ in "[1,2]" }.joined(separator: ",")
        #expect(try terms("[\(many)]") == [[IndexTerms.Region.several]])
    }

    @Test func placesAreFoundByTheirIndex() throws {
        let definitions = try [["ON", "at"], ["GEO", "ON", "at"], ["ON", "a"]].map {
            try IndexDefinition(QueryRun.words($0))
        }
        func indexes(_ words: String) throws -> [Int]? {
            let query = try Query(QueryRun.words(words.split(separator: " ").map(String.init)))
            return IndexPlanner(definitions, query).plan(query)?.indexes
        }
        #expect(try indexes("WHERE at NEAR 1 2 3 km") == [1])
        #expect(try indexes("COUNT WHERE at WITHIN 1 2 3 4 AND b = 1") == [1])
        #expect(try indexes("WHERE at WITHIN 1 2 3 4 SORT at") == [1])
        #expect(try indexes("WHERE at NEAR 1 2 3 km AND a = 1") == [2])
        #expect(try indexes("COUNT WHERE at NEAR 1 2 3 km OR a = 1") == [1, 2])
        #expect(try indexes("WHERE at EXISTS") == [0])
        #expect(try indexes("WHERE NOT at NEAR 1 2 3 km") == nil)
        #expect(try indexes("WHERE b NEAR 1 2 3 km") == nil)
        #expect(
            try Self.condition(["at", "NEAR", "1", "2", "3", "km"]).suggestedIndex() == "INDEX CREATE by-at GEO ON at")
    }

    @Test("both sides of the 180th meridian, and all longitudes of a pole, are one place")
    func equalPlacesHaveNoDistance() throws {
        for (one, other) in [((180.0, 7.0), (-180.0, 7.0)), ((0, 90), (5, 90)), ((-3, -90), (170, -90))] {
            let place = try #require(QueryPlace(longitude: one.0, latitude: one.1))
            let same = try #require(QueryPlace(longitude: other.0, latitude: other.1))
            #expect(place.distance(to: same) == 0)
        }
    }

    // MARK: Order

    @Test func rowsOfNEARHaveTheOrderOfTheirDistances() throws {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<40 {
            let center = Place.random(&random)
            // Of several places, the nearest one counts.
            let places = (0..<200).map { Self.places($0 % 3 == 0 ? 2 : 1, &random) } + [[center], [center]]
            let entries = places.enumerated().map { index, places in
                let pairs = places.map { "[\($0.longitude),\($0.latitude)]" }.joined(separator: ",")
                return QueryRun.Entry(
                    key: "\(1000 + index)", text: "{\"at\":\(places.count == 1 ? pairs : "[\(pairs)]")}")
            }
            let distances = places.map { $0.map { $0.distance(to: center) }.min() ?? 0 }
            let words = ["at", "NEAR", "\(center.longitude)", "\(center.latitude)", "5000", "km"]
            let found = try QueryRun.keys(["KEYS", "WHERE", "@key", "EXISTS", "AND"] + words, entries).keys
            let expected = distances.filter { $0 <= 5e6 }.sorted()
            #expect(found.count == expected.count)
            #expect(zip(found, expected).allSatisfy { abs(distances[(Int($0) ?? 0) - 1000] - $1) < 0.5 })
            #expect(Array(found.prefix(2)) == ["1200", "1201"] || distances.count { $0 < 1e-6 } > 2)
            var (paged, cursor): ([String], String?) = ([], nil)
            repeat {
                let page = try QueryRun.keys(
                    ["KEYS", "WHERE", "@key", "EXISTS", "AND"] + words + ["LIMIT", "\(1 + random.below(9))"]
                        + (cursor.map { ["AFTER", $0] } ?? []), entries.shuffled(using: &random))
                paged += page.keys
                cursor = page.cursor
            } while cursor != nil
            #expect(paged == found)
        }
    }

    @Test func onlyATopLevelNEARWithoutSORTSetsTheOrder() throws {
        func order(_ words: String) throws -> String {
            try Query(QueryRun.words(words.split(separator: " ").map(String.init))).order.text
        }
        #expect(try order("WHERE at NEAR 1 2 3 km") == "the distance of at")
        #expect(try order("KEYS WHERE a = 1 AND ( b = 2 AND at NEAR 1 2 3 km )") == "the distance of at")
        #expect(try order("WHERE at NEAR 1 2 3 km SORT a DESC") == "a DESC")
        for words in ["COUNT WHERE at NEAR 1 2 3 km", "WHERE NOT at NEAR 1 2 3 km", "WHERE at NEAR 1 2 3 km OR a = 1"] {
            #expect(try order(words).isEmpty, "\(words)")
        }
        let first = try Self.condition(["at", "NEAR", "1", "2", "3", "km"])
        let second = try Self.condition(["at", "NEAR", "1", "2", "4", "km"])
        let position = QueryPosition(values: [.number(QueryNumber(12.5))], key: [1])
        let cursor = QueryCursor(order: first.order, last: position).text(of: first)
        #expect(try QueryCursor(cursor, of: first) == QueryCursor(order: first.order, last: position))
        #expect(throws: QueryError.self) { try QueryCursor(cursor, of: second) }
    }
}
