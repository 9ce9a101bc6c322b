import Larder
import PackageRecords

/// `search`: finds the packages whose English summary has a word, the largest ones first, through an index. Then it
/// counts them once more by decoding all models, and compares the times.
enum Search {
    static func run(_ arguments: inout Arguments) throws {
        let limit = try arguments.number("--limit", default: 10, in: 1...1_000_000)
        let cache = try Databases.open(&arguments)
        let word = try arguments.word("a word").lowercased()
        try arguments.end()
        let query = cache.query(PackageRecord.self).where(\.words, contains: word)
        for record in try query.sorted(by: \.installedBytes, .reverse).limit(limit).values() {
            Console.out("  \(record.availableKey)  \(Format.bytes(record.installedBytes ?? 0))  \(record.summary)")
        }
        let (count, time) = try Format.timed { try query.count() }
        let (scanned, scanTime) = try Format.timed {
            try cache.query(PackageRecord.self).filter { $0.words.contains(word) }.scan().count()
        }
        Console.out(
            "\(Format.count(count)) of \(Format.count(try cache.count())) packages say '\(word)': counted in "
                + "\(Format.milliseconds(time)) through an index, \(Format.milliseconds(scanTime)) without")
        guard count == scanned else { throw Catalog.NotFound(message: "\(scanned) packages say '\(word)'") }
        if count == 0 { throw Catalog.NotFound(message: "no package says '\(word)'") }
    }
}
