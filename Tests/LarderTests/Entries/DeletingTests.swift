import Foundation
import Larder
import Testing

@Suite struct DeletingTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: work.directory + path) }

    @Test func databasesAreDeletedByName() throws {
        try work.cache("one").close()
        try work.cache("two").close()
        #expect(try Cache.delete(named: "one", directory: work.directory))
        #expect(try Cache.databases(in: work.directory) == ["two"])
        #expect(!exists("/one"))
        #expect(try Cache.delete(named: "one", directory: work.directory) == false)
    }

    @Test func deletingWithoutALarderDoesNothing() throws {
        #expect(try Cache.delete(named: "one", directory: work.directory) == false)
        #expect(try Cache.deleteAll(directory: work.directory) == [])
        #expect(try Cache.databases(in: work.directory) == [])
        expectError(.noSuchDatabase) { try Cache.setAsideDamaged(named: "one", directory: work.directory) }
        #expect(!exists(""))
        // A directory with other files stays as it is.
        try FileManager.default.createDirectory(
            atPath: work.directory + "/documents", withIntermediateDirectories: true)
        #expect(FileManager.default.createFile(atPath: work.directory + "/documents/thesis.txt", contents: nil))
        #expect(try Cache.delete(named: "documents", directory: work.directory) == false)
        #expect(try Cache.deleteAll(directory: work.directory) == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: work.directory) == ["documents"])
    }

    @Test func handlesOfADeletedDatabaseThrowDeleted() throws {
        let cache = try work.cache()
        let second = try work.cache()
        try cache.set(1, forKey: "k")
        let snapshot = try cache.snapshot()
        let run = try cache.entries(of: Int.self).makeIterator()
        #expect(try Cache.delete(named: "books", directory: work.directory))
        for handle in [cache, second] {
            expectError(.deleted) { _ = try handle.value(Int.self, forKey: "k") }
            expectError(.deleted) { try handle.set(1, forKey: "k") }
            expectError(.deleted) { try handle.remove("k") }
            expectError(.deleted) { try handle.touch("k", policy: .never) }
            expectError(.deleted) { try handle.batch { $0.remove("k") } }
            expectError(.deleted) { _ = try handle.count() }
            expectError(.deleted) { _ = try handle.values(Int.self, forKeys: ["k"]) }
            expectError(.deleted) { try handle.removeAll() }
            expectError(.deleted) { try handle.delete() }
        }
        expectError(.deleted) { _ = try snapshot.value(Int.self, forKey: "k") }
        expectError(.deleted) { _ = try run.next() }
        // Opening the name creates a new database, which old handles do not access.
        let again = try work.cache(policy: nil)
        #expect(again.policy == .lowest)
        #expect(try again.value(Int.self, forKey: "k") == nil)
        try again.set(2, forKey: "k")
        expectError(.deleted) { _ = try cache.value(Int.self, forKey: "k") }
        expectError(.deleted) { try cache.delete() }
        #expect(try again.value(Int.self, forKey: "k") == 2)
    }

    @Test func aCacheDeletesItsDatabase() throws {
        let cache = try work.cache()
        try cache.set(1, forKey: "k")
        try cache.delete()
        #expect(!exists("/books"))
        let unwritten = try work.cache("unwritten", policy: nil)
        try unwritten.delete()
        try unwritten.set(1, forKey: "k")
        #expect(try Cache.databases(in: work.directory) == ["unwritten"])
    }

    @Test func allDatabasesAreDeleted() throws {
        let open = try work.cache("open")
        try open.set(1, forKey: "k")
        try work.cache("closed").close()
        #expect(try Cache.deleteAll(directory: work.directory) == ["closed", "open"])
        #expect(try Cache.databases(in: work.directory) == [])
        expectError(.deleted) { _ = try open.value(Int.self, forKey: "k") }
        #expect(try Cache.deleteAll(directory: work.directory) == [])
    }

    @Test func quarantiningADamagedDatabaseMakesItUsableAgain() throws {
        let cache = try work.cache("books", policy: .middle)
        try cache.set(1, forKey: "k")
        expectError(.invalidArgument) { try Cache.setAsideDamaged(named: "books", directory: work.directory) }
        cache.close()
        expectError(.noSuchDatabase) { try Cache.setAsideDamaged(named: "none", directory: work.directory) }
        expectError(.invalidArgument) { try Cache.setAsideDamaged(named: "books", directory: work.directory) }
        let epoch = try #require(
            try FileManager.default.contentsOfDirectory(atPath: work.directory + "/books").first { UInt64($0) != nil })
        let current = work.directory + "/books/\(epoch)/CURRENT"
        try Data("MANIFEST-009999\n".utf8).write(to: URL(fileURLWithPath: current))
        let files = try FileManager.default.contentsOfDirectory(atPath: work.directory + "/books/\(epoch)").sorted()
        let text = expectError(.damaged) { _ = try work.cache() }
        #expect(text.contains("books") && text.contains("CURRENT") && text.contains("set it aside"))
        expectError(.damaged) { _ = try work.cache(policy: nil) }
        // Nothing was changed, and the other databases are untouched.
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: work.directory + "/books/\(epoch)").sorted() == files)
        let other = try work.cache("other")
        try other.set(1, forKey: "k")
        try Cache.setAsideDamaged(named: "books", directory: work.directory)
        #expect(exists("/DAMAGED"))
        let again = try work.cache(policy: nil)
        #expect(again.policy == .middle)
        #expect(try again.count() == 0)
        #expect(try other.count() == 1)
    }

    /// A salvage starts when the program calls it, or automatically with the option. This works even after the handle
    /// that found the damage was closed.
    @Test func salvagingKeepsReadableEntries() throws {
        for isByItself in [false, true] {
            let name = isByItself ? "itself" : "called"
            let cache = try work.cache(name, policy: .never)
            for number in 0..<50 { try cache.set(number, forKey: "k\(number)") }
            cache.close()
            let epoch = try #require(
                try FileManager.default.contentsOfDirectory(atPath: work.directory + "/" + name)
                    .first { UInt64($0) != nil })
            let current = work.directory + "/\(name)/\(epoch)/CURRENT"
            try Data("MANIFEST-009999\n".utf8).write(to: URL(fileURLWithPath: current))
            if !isByItself {
                expectError(.damaged) { _ = try work.cache(name, policy: nil) }
                let report = try Cache.salvage(named: name, directory: work.directory)
                #expect(report.entries == 50 && report.lostKeys == [] && report.evidence != nil)
                #expect(report.description.contains("no entry is lost"))
                expectError(.invalidArgument) { _ = try Cache.salvage(named: name, directory: work.directory) }
            }
            let again = try work.cache(name, policy: nil) { $0.onDamage = .salvage }
            #expect(try again.count() == 50)
            #expect(try again.value(Int.self, forKey: "k7") == 7)
            again.close()
        }
        expectError(.noSuchDatabase) { _ = try Cache.salvage(named: "none", directory: work.directory) }
    }

    @Test func aDamagedDatabaseCanBeDeleted() throws {
        try work.cache().close()
        try Data("rubbish".utf8).write(to: URL(fileURLWithPath: work.directory + "/books/POINTER"))
        expectError(.damaged) { _ = try work.cache() }
        #expect(try Cache.delete(named: "books", directory: work.directory))
        #expect(try work.cache().count() == 0)
    }
}
