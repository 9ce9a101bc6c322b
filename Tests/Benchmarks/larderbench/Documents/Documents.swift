/// JSON documents of about 161 bytes, which are the same in every run.
struct Documents {
    /// How many documents have the same author.
    static let perAuthor = 20

    let count: Int

    /// The documents of 1 % of the prices.
    var share: Int { max(1, count / 100) }

    /// Every price occurs once. The factor has no divisor in common with the count, so that the order of the prices is
    /// not that of the keys.
    private func price(_ index: Int) -> Int { index &* 7919 % count }

    private static func padded(_ number: Int, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }

    /// The first document of an author.
    func first(of author: Int) -> Int? { (0..<count).first { price($0) / Self.perAuthor == author } }

    static func author(_ number: Int) -> String { "author \(padded(number, 6))" }

    func text(_ index: Int) -> String {
        let author = Self.author(price(index) / Self.perAuthor)
        let title = "Volume \(Self.padded(index &* 104_729 % count, 6)) of the collected works in order"
        return #"{"author":"\#(author)","title":"\#(title)","year":\#(1900 + index % 120),"price":\#(price(index)),"#
            + #""pages":\#(index % 997),"language":"en","isbn":"978-0-00-\#(Self.padded(index, 6))-0"}"#
    }
}

/// The queries that the suite measures. Each number stands for other values in the same query.
enum DocumentQuery: String, CaseIterable {
    case equality = "20 documents of an author"
    case range = "1 % of the documents, the first 10 by the same field"
    case count = "count of 1 % of the documents"
    case sorted = "1 % of the documents, the first 10 by another field"
    case unindexed = "condition on a field without an index, per document"

    var table: String { "Documents: \(rawValue)" }

    /// How often a run asks the query.
    func repetitions(isQuick: Bool) -> Int {
        switch self {
        case .equality, .range: isQuick ? 500 : 5000
        case .count, .sorted: isQuick ? 50 : 300
        case .unindexed: isQuick ? 3 : 10
        }
    }

    /// The number of operations of one query.
    func operations(_ documents: Documents) -> Int { self == .unindexed ? documents.count : 1 }

    /// The number of rows, or the count, that the query returns.
    func expected(_ documents: Documents) -> Int {
        switch self {
        case .equality: Documents.perAuthor
        case .range, .sorted: min(10, documents.share)
        case .count: documents.share
        case .unindexed: (documents.count + 996 - 7) / 997
        }
    }

    /// The values in the query.
    func values(_ number: Int, _ documents: Documents) -> [String] {
        switch self {
        case .equality: [Documents.author(number &* 13 % (documents.count / Documents.perAuthor))]
        case .range, .count, .sorted:
            { [String($0), String($0 + documents.share - 1)] }(
                number &* 1009 % (documents.count - documents.share))
        case .unindexed: ["7"]
        }
    }

    /// The words after QUERY.
    func words(_ number: Int, _ documents: Documents) -> [String] {
        let values = values(number, documents)
        return switch self {
        case .equality: ["WHERE", "author", "=", values[0]]
        case .range: ["WHERE", "price", "BETWEEN"] + values + ["SORT", "price", "LIMIT", "10"]
        case .count: ["COUNT", "WHERE", "price", "BETWEEN"] + values
        case .sorted: ["WHERE", "price", "BETWEEN"] + values + ["SORT", "title", "LIMIT", "10"]
        case .unindexed: ["COUNT", "WHERE", "pages", "=", values[0], "SCAN"]
        }
    }

    /// The same query in SQL. Its values are bound as bytes. Casts have an affinity, with which SQLite would not use the
    /// indexes; the results of operators have none.
    var sql: String {
        let price = "json_extract(doc, '$.price')"
        let number = "CAST(? AS TEXT) + 0"
        let between = "\(price) BETWEEN \(number) AND \(number)"
        return switch self {
        case .equality: "SELECT key, doc FROM docs WHERE json_extract(doc, '$.author') = CAST(? AS TEXT) || ''"
        case .range: "SELECT key, doc FROM docs WHERE \(between) ORDER BY \(price) LIMIT 10"
        case .count: "SELECT CAST(count(*) AS TEXT) FROM docs WHERE \(between)"
        case .sorted:
            "SELECT key, doc FROM docs WHERE \(between) ORDER BY json_extract(doc, '$.title') LIMIT 10"
        case .unindexed:
            "SELECT CAST(count(*) AS TEXT) FROM docs WHERE json_extract(doc, '$.pages') = \(number)"
        }
    }

    /// Whether the query returns a number instead of rows.
    var isCount: Bool { self == .count || self == .unindexed }
}

/// The indexes of the suite: the first one, or all three.
enum DocumentIndex: String, CaseIterable {
    case author, price, year
}
