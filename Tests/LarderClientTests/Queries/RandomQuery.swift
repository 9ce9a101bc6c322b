import Foundation
import Larder
import LarderClient
import LarderTestSupport
import Testing

/// A model with properties of many kinds.
struct RandomBook: Codable, Equatable, Sendable {
    struct Place: Codable, Equatable, Sendable {
        var city: String
        var floor: Int?
    }

    enum Kind: String, Codable, Sendable, CaseIterable { case novel, poem, play }

    var number: Int
    var author: String
    var year: Int
    var price: Double
    var rating: Int?
    var tags: [String]
    var bought: Date?
    var kind: Kind
    var place: Place?
    var isOpen: Bool

    init(_ number: Int, _ random: inout SeededGenerator) {
        self.number = number
        author = ["Al", "Bo", "Bo*", "Cy?", "", "B o"].randomElement(using: &random) ?? ""
        year = .random(in: 1990...2005, using: &random)
        price = Double(Int.random(in: -4...40, using: &random)) / 4
        rating = Bool.random(using: &random) ? .random(in: 0...5, using: &random) : nil
        tags = ["x", "y", "z", "xy"].filter { _ in Bool.random(using: &random) }
        bought =
            Bool.random(using: &random) ? Date(timeIntervalSince1970: 1e9 + .random(in: 0...10, using: &random)) : nil
        kind = Kind.allCases.randomElement(using: &random) ?? .novel
        place =
            Bool.random(using: &random)
            ? Place(
                city: ["Ulm", "Rom"].randomElement(using: &random) ?? "",
                floor: Bool.random(using: &random) ? .random(in: 0...3, using: &random) : nil) : nil
        isOpen = .random(using: &random)
    }

    static let indexes = [
        Index(\RandomBook.author, .descending(\RandomBook.year)), Index(\RandomBook.year), Index(\RandomBook.tags),
        Index(\RandomBook.rating), Index(.descending(\RandomBook.price)), Index(\RandomBook.place?.city),
        Index(\RandomBook.kind, .ascending(\RandomBook.price)), Index(\RandomBook.author, prefix: "b:"),
    ]
}

/// A random query, and the same conditions in plain Swift.
struct RandomQuery<Source: QuerySource> {
    private(set) var query: ModelQuery<RandomBook, Source>
    private(set) var conditions: [(RandomBook) throws -> Bool] = []
    private(set) var comparisons: [(RandomBook, RandomBook) -> Int] = []
    private(set) var skip = 0
    private(set) var limit = Int.max

    init(_ query: ModelQuery<RandomBook, Source>, _ random: inout SeededGenerator) {
        self.query = query
        for _ in 0..<Int.random(in: 0...3, using: &random) { addCondition(&random) }
        if Int.random(in: 0..<4, using: &random) == 0 {
            let predicate = RandomPredicates.all[.random(in: 0..<RandomPredicates.all.count, using: &random)]
            self.query = self.query.where(predicate)
            conditions.append { try predicate.evaluate($0) }
        }
        if Int.random(in: 0..<4, using: &random) == 0 {
            self.query = self.query.filter { $0.number % 3 != 0 }
            conditions.append { $0.number % 3 != 0 }
        }
        let properties = [0, 1, 2, 3].shuffled(using: &random)
        for property in properties.prefix(.random(in: 0...2, using: &random)) { addOrder(by: property, &random) }
        if Bool.random(using: &random) {
            limit = .random(in: 0...20, using: &random)
            self.query = self.query.limit(limit)
        }
        if Int.random(in: 0..<3, using: &random) == 0 {
            skip = .random(in: 0...10, using: &random)
            self.query = self.query.skip(skip)
        }
    }

    private mutating func addCondition(_ random: inout SeededGenerator) {
        let other = RandomBook(0, &random)
        let (low, high) = (other.year, other.year + Int.random(in: 0...8, using: &random))
        switch Int.random(in: 0..<14, using: &random) {
        case 0: add(query.where(\.author, other.author)) { $0.author == other.author }
        case 1: add(query.where(\.author, in: ["Al", "Bo*"])) { ["Al", "Bo*"].contains($0.author) }
        case 2: add(query.where(\.year, low..<high)) { (low..<high).contains($0.year) }
        case 3: add(query.where(\.year, low...high)) { (low...high).contains($0.year) }
        case 4: add(query.where(\.price, other.price...)) { $0.price >= other.price }
        case 5: add(query.where(\.rating, other.rating)) { $0.rating == other.rating }
        case 6: add(query.where(\.rating, 2...4)) { $0.rating.map { (2...4).contains($0) } ?? false }
        case 7: add(query.where(\.tags, contains: "x")) { $0.tags.contains("x") }
        case 8: add(query.where(\.tags, containsAll: ["x", "y"])) { $0.tags.contains("x") && $0.tags.contains("y") }
        case 9: add(query.where(\.kind, other.kind)) { $0.kind == other.kind }
        case 10: add(query.where(\.place?.city, other.place?.city)) { $0.place?.city == other.place?.city }
        case 11: add(query.where(\.author, prefix: "B")) { $0.author.hasPrefix("B") }
        case 12:
            add(query.where(\.bought, ..<Date(timeIntervalSince1970: 1e9 + 5))) {
                $0.bought.map { $0.timeIntervalSince1970 < 1e9 + 5 } ?? false
            }
        default: add(query.where(keyPrefix: "b:1")) { "b:\($0.number)".hasPrefix("b:1") }
        }
    }

    private mutating func add(_ query: ModelQuery<RandomBook, Source>, _ condition: @escaping (RandomBook) -> Bool) {
        self.query = query
        conditions.append(condition)
    }

    private mutating func addOrder(by property: Int, _ random: inout SeededGenerator) {
        let direction: ModelQuery<RandomBook, Source>.Direction = Bool.random(using: &random) ? .forward : .reverse
        func order<Value: Comparable>(_ value: @escaping (RandomBook) -> Value?) {
            comparisons.append { left, right in
                guard let (left, right) = value(left).flatMap({ left in value(right).map { (left, $0) } }) else {
                    let order = (value(left) == nil ? 0 : 1) - (value(right) == nil ? 0 : 1)
                    return direction == .forward ? order : -order
                }
                let order = left < right ? -1 : left == right ? 0 : 1
                return direction == .forward ? order : -order
            }
        }
        switch property {
        case 0:
            query = query.sorted(by: \.year, direction)
            order(\.year)
        case 1:
            query = query.sorted(by: \.rating, direction)
            order(\.rating)
        case 2:
            query = query.sorted(by: \.price, direction)
            order(\.price)
        default:
            query = query.sorted(by: \.place?.city, direction)
            order { $0.place?.city }
        }
    }

    /// The expected models. Without an order of its own, a query may have that of an index: `isOrdered` is false.
    func expected(_ books: [RandomBook]) throws -> (all: [RandomBook], isOrdered: Bool) {
        var found = try books.filter { book in try conditions.allSatisfy { try $0(book) } }
        found.sort { left, right in
            for comparison in comparisons {
                let order = comparison(left, right)
                if order != 0 { return order < 0 }
            }
            return "b:\(left.number)" < "b:\(right.number)"
        }
        return (found, !comparisons.isEmpty)
    }
}

/// Predicates, most of which have words in a query.
enum RandomPredicates {
    static let year = 1998
    static let authors = ["Al", "Cy?"]
    static let range = 1995..<2000
    static let day = Date(timeIntervalSince1970: 1e9 + 5)

    static let exact: [Predicate<RandomBook>] = {
        let (year, authors, range, day) = (Self.year, Self.authors, Self.range, Self.day)
        return [
            #Predicate { $0.author == "Bo" && $0.year >= 2000 && $0.author.contains("o") },
            #Predicate { $0.year != year }, #Predicate { year > $0.year }, #Predicate { !($0.year <= year) },
            #Predicate { $0.author < "Bo*" || $0.price >= 5.25 },
            #Predicate { $0.rating == nil }, #Predicate { $0.rating != nil && $0.isOpen },
            #Predicate { $0.rating == 3 }, #Predicate { $0.rating != 3 }, #Predicate { !$0.isOpen },
            #Predicate { $0.place?.city == "Ulm" }, #Predicate { $0.place?.floor == nil },
            #Predicate { $0.place?.floor == 2 || $0.tags.contains("z") },
            #Predicate { authors.contains($0.author) }, #Predicate { range.contains($0.year) },
            #Predicate { (1993...1996).contains($0.year) }, #Predicate { !$0.tags.contains("x") },
            #Predicate { $0.author.starts(with: "B") }, #Predicate { $0.author.contains("") },
            #Predicate { if let rating = $0.rating { rating > 2 } else { false } },
            #Predicate { $0.number < 5 || $0.number > 20 || $0.number == 7 },
            #Predicate { $0.bought == day }, #Predicate { _ in true }, #Predicate { _ in false },
        ]
    }()

    static let residual: [Predicate<RandomBook>] = [
        #Predicate { $0.author.contains("*") }, #Predicate { !$0.author.contains("?") },
        #Predicate { $0.author.isEmpty }, #Predicate { $0.author.count == 2 && $0.year > 1999 },
        #Predicate { ($0.rating ?? 3) > 2 }, #Predicate { $0.tags == ["x", "y"] },
        #Predicate { $0.tags.contains(where: { $0 == "z" }) }, #Predicate { $0.tags.allSatisfy { $0 != "x" } },
        #Predicate { $0.year > 2000 || $0.tags.isEmpty }, #Predicate { $0.year + 1 == 2000 },
        #Predicate { $0.year % 2 == 0 && ($0.author == "Bo" || $0.price < 2) },
        #Predicate { $0.isOpen ? $0.year > 2000 : $0.year < 1995 },
    ]

    static let all = exact + residual
}
