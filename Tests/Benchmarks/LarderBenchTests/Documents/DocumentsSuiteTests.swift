import Testing

import class LarderTestSupport.DaemonProcess
import class LarderTestSupport.TemporaryDirectory

@testable import larderbench

@Suite struct DocumentsSuiteTests {
    @Test func documentsHaveTheirSizeAndPrices() throws {
        let documents = Documents(count: 200_000)
        let sizes = stride(from: 0, to: 200_000, by: 997).map { documents.text($0).utf8.count }
        #expect(abs(sizes.reduce(0, +) / sizes.count - 161) <= 2, "\(sizes)")
        let few = Documents(count: 2000)
        let prices = Set(
            (0..<2000).compactMap { few.text($0).split(separator: #""price":"#).last?.prefix { $0 != "," } })
        #expect(prices.count == 2000)
    }

    /// The suite checks the number of rows of each answer.
    @Test(.enabled(if: (try? SQLiteLibrary.shared.get()) != nil, "SQLite's library is not there"))
    func theSuiteMeasuresAllStores() throws {
        let directory = try TemporaryDirectory()
        let tree = try TemporaryTree(in: directory.path)
        let options = try BenchOptions(["--larderd", DaemonProcess.program(), "--quick"])
        let results = Results()
        try DocumentsSuite(options, tree, count: 2000).runRound(0, into: results)
        #expect(results.failures.isEmpty, "\(results.failures)")
        for store in [DocumentsSuite.larder, DocumentsSuite.sqlite] {
            for indexes in [0, 1, 3] {
                let figure = results.median(DocumentsSuite.storeTable(indexes), store, .processor)
                #expect(try #require(figure) > 0)
            }
            for query in DocumentQuery.allCases { #expect(results.median(query.table, store, .processor) != nil) }
            #expect(results.median(DocumentsSuite.firstTable, store, .command) != nil)
        }
    }
}
