import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that databases of earlier versions stay readable. A directory in `Golden` is never regenerated: for a new
/// format, add a new directory and a new test.
@Suite struct GoldenTests {
    private static let start: Int64 = 1_700_000_000_000

    static let directory = PackageRoot.path + "/Tests/LarderEngineTests/Golden"

    /// The content of `Golden/format-1/books`, whose policy is "low".
    private static let books: [(key: [UInt8], payload: [UInt8], header: RecordHeader)] = [
        ([], Array("the empty key".utf8), RecordHeader(storedAt: start)),
        ([0, 0xFF, 0x0A], [0, 1, 2, 0xFF], RecordHeader(storedAt: start)),
        (Array("custom".utf8), [9], RecordHeader(storedAt: start, codec: .custom)),
        (Array("empty".utf8), [], RecordHeader(storedAt: start)),
        (Array("json".utf8), Array("{\"name\":\"一本书\"}".utf8), RecordHeader(storedAt: start, codec: .json)),
        (Array("large".utf8), [UInt8](repeating: 0x61, count: 5000), RecordHeader(storedAt: start)),
        (Array("never".utf8), Array("always there".utf8), RecordHeader(storedAt: start, rule: .ownNever)),
        (Array("overwritten".utf8), Array("new".utf8), RecordHeader(storedAt: start + 1000)),
        (Array("own".utf8), Array("an hour".utf8), RecordHeader(storedAt: start, rule: .own(start + 3_600_000))),
        (Array("plist".utf8), Array("bplist00".utf8), RecordHeader(storedAt: start, codec: .propertyList)),
    ]

    /// Returns a copy of the golden larder, so that tests do not change the original.
    private func larder(at milliseconds: Int64) throws -> TestLarder {
        let larder = try TestLarder()
        try Files.copy(Self.directory + "/format-1", to: larder.path)
        larder.time.stepWall(milliseconds: Self.start + milliseconds - larder.time.wallMilliseconds())
        return larder
    }

    @Test func filesInFormat1AreRead() throws {
        let larder = try larder(at: 2000)
        #expect(try larder.engine().databases.map(\.name) == ["0", "books", "was-never"])
        let database = try larder.database()
        #expect(database.policy == .low)
        #expect(database.rules.deadBefore == Self.start - 58_000)
        let cursor = try #require(try database.cursor())
        for (key, payload, header) in Self.books {
            let record = try #require(try database.get(Key(key)), "\(Key(key))")
            #expect(Array(record.payload) == payload, "\(Key(key))")
            #expect(record.header == header, "\(Key(key))")
            #expect(try cursor.next())
            #expect(try Array(cursor.key().bytes) == key)
        }
        #expect(try !cursor.next())
        let standard = try larder.database("0")
        #expect(standard.policy == .never)
        #expect(try standard.contents() == ["a": "1"])
        let other = try larder.database("was-never")
        #expect(other.policy == .every(milliseconds: 90_500))
        #expect(other.durableState.isUnindexed)
        #expect(try other.contents() == ["b": "2"])
        for name in ["0", "books", "was-never"] { try larder.database(name).put("new", "entry") }
        larder.close()
        #expect(try larder.database().value("json") == "{\"name\":\"一本书\"}")
        #expect(try larder.database("0").contents() == ["a": "1", "new": "entry"])
    }

    @Test func entriesInFormat1ExpireAndAreSwept() throws {
        let larder = try larder(at: 3_600_000)
        #expect(try larder.database().value("own") == nil)
        #expect(try larder.database().value("json") != nil)
        #expect(try larder.database("was-never").value("b") == nil)
        larder.close()
        larder.time.advance(milliseconds: 90_000_000)
        let database = try larder.database()
        #expect(try database.contents() == ["never": "always there"])
        for name in ["0", "was-never"] { _ = try larder.database(name) }
        try larder.maintain()
        #expect(try database.rawKeys() == [[0] + Array("format".utf8), [1] + Array("never".utf8)])
        #expect(try larder.database("was-never").rawKeys().count == 1)
        #expect(try larder.database("0").contents() == ["a": "1"])
    }

    /// Opens the files that larderd 0.1.0 left after a SIGKILL: tag purges in a file TAGS, and a journal.
    @Test func tagPurgesOfVersion010AreMigrated() throws {
        let larder = try TestLarder()
        try Files.copy(Self.directory + "/release-0.1.0", to: larder.path)
        // The time of the test: a minute after the purge.
        let end: Int64 = 1_795_743_252_989
        larder.time.stepWall(milliseconds: end - larder.time.wallMilliseconds())
        for _ in 0..<2 {
            let database = try larder.database()
            #expect(try larder.engine().databases.map(\.name) == ["0", "books", "cache"])
            #expect(try database.contents() == ["plain": "1", "kept": "1", "purged-too": "2", "fresh": "2"])
            #expect(try larder.database("cache").policy == .every(milliseconds: 90_000))
            #expect(try larder.database("0").policy == .low)
            #expect(try larder.database("0").contents() == ["a": "1"])
            var ticket = CommitTicket.none
            for (key, expected) in [("stale", "1"), ("graceless", nil), ("purged", nil)] as [(String, String?)] {
                let request = FetchRequest(key: Key(key), holder: LeaseHolder(), askedAt: database.now())
                var served: String?
                _ = try database.fetch(request, now: database.now(), .mayBlock, ticket: &ticket) { _, payload in
                    served = payload.map { String(decoding: $0, as: UTF8.self) }
                }
                #expect(served == expected, "\(key) within its grace")
            }
            #expect(!FileSystem.exists(larder.directory(of: "books") + "/" + TagsFile.name))
            #expect(FileSystem.exists(larder.path + "/ORIGINS") && FileSystem.exists(larder.path + "/FUNCTIONS"))
            #expect(larder.events.all.allSatisfy { $0.level == .info }, "\(larder.events.all)")
            larder.close()
        }
        try larder.expectHealthy()
    }

    /// Opens files with an index.
    @Test func indexesAreRead() throws {
        let larder = try TestLarder { $0.indexMaker = WordIndexMaker() }
        try Files.copy(Self.directory + "/indexes", to: larder.path)
        larder.time.stepWall(milliseconds: Self.start + 3000 - larder.time.wallMilliseconds())
        let indexed = try larder.database("indexed")
        #expect(try indexed.indexStates() == ["w": .ready])
        #expect(try indexed.indexes.list(counting: true).map(\.hints) == [4])
        #expect(indexed.appliedState.indexes.map(\.definition) == [Array("words %, é".utf8)])
        #expect(try indexed.keys(withWordsFrom: "blue", through: "blue") == ["a", "b"])
        #expect(try indexed.missingHints() == [])
        larder.close()
        try larder.expectHealthy()
    }

    /// `LARDER_MAKE_GOLDEN=format-2 swift test --filter GoldenTests` creates a new directory. It never overwrites an
    /// existing one.
    @Test(.enabled(if: TestSetting.makeGolden.isSet))
    func makeGoldenFiles() throws {
        let name = TestSetting.makeGolden.text ?? ""
        let target = Self.directory + "/" + name
        try #require(!FileSystem.exists(target) && !name.isEmpty)
        let larder = try TestLarder { $0.indexMaker = WordIndexMaker() }
        let database = try larder.database(policy: .high)
        func put(_ key: [UInt8], _ payload: [UInt8], _ header: RecordHeader) throws {
            try database.commit([Key(key)], loading: .none) { $0.put(0, Record(header, payload: payload)) }
        }
        try put(Array("overwritten".utf8), Array("old".utf8), RecordHeader(storedAt: Self.start))
        try put(Array("removed".utf8), Array("old".utf8), RecordHeader(storedAt: Self.start))
        // Half of the entries are written to a table, the others stay in the log.
        for (key, payload, header) in Self.books.prefix(5) { try put(key, payload, header) }
        try database.durableState.store?.compactAll()
        try database.remove("removed")
        larder.time.advance(milliseconds: 2000)
        try database.setPolicy(.low)
        for (key, payload, header) in Self.books.dropFirst(5) { try put(key, payload, header) }
        try larder.database("0", policy: .never).put("a", "1")
        let other = try larder.database("was-never", policy: .never)
        try other.put("b", "2")
        try other.setPolicy(try #require(.every(milliseconds: 90_500)))
        let indexed = try larder.database("indexed", policy: .never)
        try indexed.put("a", "red,blue")
        try indexed.flush()
        try indexed.createIndex("w", "words %, é")
        try indexed.finishIndexes()
        try indexed.put("b", "green,blue")
        larder.close()
        // LevelDB's text log and lock files are not part of the format.
        func copy(_ from: String, _ to: String) throws {
            try FileSystem.makeDirectories(to)
            for name in try FileSystem.list(from) where !["LOCK", "LOG", "LOG.old"].contains(name) {
                let (source, copied) = (from + "/" + name, to + "/" + name)
                if FileSystem.isDirectory(source) {
                    try copy(source, copied)
                } else {
                    try Files.write(copied, try Files.read(source))
                }
            }
        }
        try copy(larder.path, target)
    }
}
