import Foundation
import Larder
import PackageRecords

/// `search`: finds the packages whose English summary contains a word, with a predicate on the models.
enum Search {
    static func run(_ arguments: inout Arguments) throws {
        let limit = try arguments.number("--limit", default: 10, in: 1...1_000_000)
        let cache = try Databases.open(&arguments)
        let word = try arguments.word("a word")
        try arguments.end()
        let clock = ContinuousClock()
        let begin = clock.now
        let found = try cache.dictionary(
            matching: #Predicate<PackageRecord> { $0.summary.contains(word) })
        let time = clock.now - begin
        for (key, record) in found.sorted(by: { $0.key < $1.key }).prefix(limit) {
            Console.out("  \(key)  \(record.summary)")
        }
        let all = try cache.count()
        Console.out(
            "\(Format.count(found.count)) of \(Format.count(all)) packages say '\(word)', found in \(Format.seconds(time))"
        )
        if found.isEmpty { throw Catalog.NotFound(message: "no package says '\(word)'") }
    }
}
