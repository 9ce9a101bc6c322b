import Foundation
import Larder
import LarderTestSupport
import Testing

/// Tests a typical program that fits on one screen.
@Suite struct OneScreenTests {
    @Test func theExampleOfATypicalProgramWorks() throws {
        let larder = try TemporaryDirectory(inMemory: true)
        let cache = try Cache(named: "userdb", policy: .low, directory: larder.path)
        let stored = Reader(book: Book(name: "一本书", price: 18.5), userName: "王五")
        try cache.set(stored, forKey: "reader")
        let reader = try cache.value(Reader.self, forKey: "reader")
        #expect(reader == stored)
        let before = try cache.snapshot()
        try cache.batch {
            try $0.set(Reader(book: Book(name: "Middlemarch", price: 9), userName: "Ana"), forKey: "new")
            $0.remove("reader")
        }
        #expect(try cache.value(Reader.self, forKey: "reader") == nil)
        #expect(try before.value(Reader.self, forKey: "reader") == stored)
        #expect(try cache.keys(matching: #Predicate<Reader> { $0.book.price < 10 }) == ["new"])
        try Cache.delete(named: "userdb", directory: larder.path)
        #expect(throws: LarderError.self) { try cache.value(Reader.self, forKey: "new") }
    }
}
