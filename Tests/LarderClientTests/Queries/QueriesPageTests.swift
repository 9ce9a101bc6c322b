import Foundation
import Larder
import LarderTestSupport
import Testing

/// Runs the Swift code of docs/Queries.md. `DocsReadmeTests` checks that no code is missing.
@Suite final class QueriesPageTests {
    private struct Book: Codable, Sendable {
        var title: String
        var author: String
        var year: Int
        var price: Double
        var tags: [String]
        var isbn: String

        enum CodingKeys: String, CodingKey {
            case title, author, year, price, tags
            case isbn = "ISBN"
        }
    }

    private let directory: TemporaryDirectory
    private var printed: [String] = []

    init() throws { directory = try TemporaryDirectory(inMemory: true) }

    /// Instead of the default directory.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    private func Cache(named name: String, policy: UpdatePolicy, indexes: [Index]) async throws -> Larder.Cache {
        let cache = try await Larder.Cache(named: name, policy: policy, indexes: indexes, directory: directory.path)
        try await cache.set(
            Book(title: "The sea", author: "Bo", year: 2001, price: 5, tags: ["y", "x"], isbn: "1"), forKey: "1")
        return cache
    }

    private func print(_ items: Any...) { printed.append("\(items)") }

    func printBooks() async throws {
        let books = try await Cache(
            named: "books", policy: .low,
            indexes: [Index(\Book.author), Index(\Book.year, .descending(\Book.price)), Index(\Book.isbn, at: "ISBN")])
        let predicate = #Predicate<Book> { $0.author == "Bo" && $0.year >= 2000 && $0.title.contains("sea") }
        print(try await books.query(predicate).sorted(by: \.price).limit(10).values())
        print(try await books.query(Book.self).where(\.author, in: ["Bo", "Al"]).where(\.year, 1990..<2000).keys())
        let long = books.query(Book.self).where(\.tags, containsAll: ["x", "y"]).filter { $0.title.count > 3 }
        print(try await long.count())
        print(try await books.query(Book.self).grouped(by: \.author, .count, .sum(\.price)).rows())
        for try await (title, price) in books.query(Book.self).where("ISBN", "1").select(\.title, \.price) {
            print(title, price)
        }
    }

    @Test("the code in docs/Queries.md works") func theCodeOfThePageWorks() async throws {
        try await printBooks()
        #expect(printed.count == 5 && printed[0].contains("The sea") && printed[1] == "[[]]" && printed[2] == "[1]")
        #expect(printed[3].contains(#""Bo""#) && printed[4] == #"["The sea", 5.0]"#)
    }
}
