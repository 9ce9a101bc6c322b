import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct CorruptionTests {
    let workspace: Workspace

    /// Creates a thousand entries in blocks of about 4 KiB, and flips one bit in the value of `key(500)`.
    init() throws {
        workspace = try Workspace(Options(compression: .none))
        for number in 0..<1000 {
            try workspace.database.put(key(number), key(number) + [UInt8](repeating: 0x20, count: 100) + key(number))
        }
        try workspace.database.compact()
        try workspace.database.close()
        let table = "\(workspace.path)/\(try #require(try workspace.files(endingWith: ".ldb").first))"
        var damaged = try Files.read(table)
        let tail = [UInt8](repeating: 0x20, count: 100) + key(500)
        let start = try #require(damaged.indices.first { damaged[$0...].starts(with: tail) })
        damaged[start] ^= 1
        try Files.write(table, damaged)
        try workspace.reopen()
    }

    @Test func aGetReportsAFlippedBitAsCorruption() throws {
        let error = failure { () throws(LevelDBError) in _ = try workspace.database.get(key(500)) }
        #expect(error?.code == .corruption)
        #expect(error?.message.contains("block checksum mismatch") == true)
        #expect(error?.key == key(500))
        #expect(error?.description.hasPrefix("get of key \"k00000500\" in \(workspace.path): corruption: ") == true)
        // Keys in other blocks can still be read, also repeatedly.
        for _ in 0..<3 {
            #expect(try workspace.database.get(key(0)) != nil)
            #expect(try workspace.database.get(key(999)) != nil)
            #expect(
                failure { () throws(LevelDBError) in _ = try workspace.database.get(key(500)) }?.code == .corruption)
        }
    }

    /// LevelDB's iterator skips a damaged block and is valid after it. Only callers that ask the iterator for its error
    /// detect the gap.
    @Test func aCursorStopsAtADamagedBlockInsteadOfSkippingIt() throws {
        for backward in [false, true] {
            let cursor = try workspace.database.cursor()
            if backward { try cursor.seekToLast() } else { try cursor.seekToFirst() }
            var last: [UInt8] = []
            let error = failure { () throws(LevelDBError) in
                while cursor.isValid {
                    last = cursor.key
                    if backward { try cursor.previous() } else { try cursor.next() }
                }
            }
            #expect(error?.code == .corruption)
            #expect(error?.operation == (backward ? "previous" : "next"))
            #expect(!cursor.isValid)
            // A block has about 35 entries.
            let expected = backward ? key(500)...key(550) : key(450)...key(500)
            #expect(expected.contains(last), "\(String(decoding: last, as: UTF8.self))")
        }
    }

    @Test func aSeekIntoADamagedBlockThrows() throws {
        let database = workspace.database
        for seek in [Move.to(key(500)), Move.backwardTo(key(500))] {
            let cursor = try database.cursor()
            let error = failure { () throws(LevelDBError) in try seek(cursor) }
            #expect(error?.code == .corruption)
            #expect(error?.key == key(500))
            #expect(!cursor.isValid)
            // The cursor keeps the error. A new cursor can read other blocks.
            #expect(failure { () throws(LevelDBError) in try cursor.seekToFirst() }?.code == .corruption)
            let other = try database.cursor(prefix: bytes("k000001"))
            try other.seekToFirst()
            #expect(try keys(other).count == 100)
        }
        let prefixed = try database.cursor(prefix: key(500))
        #expect(failure { () throws(LevelDBError) in try prefixed.seekToFirst() }?.code == .corruption)
    }

    /// A cursor reports the missing file. A get does not, because LevelDB takes the error "no such file" for "no such
    /// key".
    @Test func aCursorReportsADeletedTableAsDamage() throws {
        unlink("\(workspace.path)/\(try #require(try workspace.files(endingWith: ".ldb").first))")
        let cursor = try workspace.database.cursor()
        let error = failure { () throws(LevelDBError) in try cursor.seekToFirst() }
        #expect(error?.code == .corruption)
        #expect(error?.message.contains("No such file or directory") == true)
        #expect(try workspace.database.get(key(0)) == nil)
        try #require(cursor.isValid == false)
        cursor.close()
        #expect(failure { () throws(LevelDBError) in try workspace.reopen() }?.code == .corruption)
    }

    @Test func aTruncatedTableIsReportedAsDamage() throws {
        try workspace.database.close()
        let table = "\(workspace.path)/\(try #require(try workspace.files(endingWith: ".ldb").first))"
        let whole = try Files.read(table)
        for count in [0, 1, 47, 48, whole.count / 2, whole.count - 1] {
            try Files.write(table, [UInt8](whole[..<count]))
            let database = try Database(path: workspace.path)
            let error = failure { () throws(LevelDBError) in _ = try database.get(key(0)) }
            #expect(error?.code == .corruption, "\(count) bytes: \(String(describing: error))")
            let cursor = try database.cursor()
            #expect(failure { () throws(LevelDBError) in try cursor.seekToFirst() }?.code == .corruption)
        }
    }
}

extension [UInt8] {
    /// Ranges of keys, in LevelDB's order.
    static func ... (first: [UInt8], last: [UInt8]) -> KeyRange { KeyRange(first: first, last: last) }
}

struct KeyRange {
    let first: [UInt8]
    let last: [UInt8]

    func contains(_ key: [UInt8]) -> Bool {
        !key.lexicographicallyPrecedes(first) && !last.lexicographicallyPrecedes(key)
    }
}
