import LarderLevelDB
import LarderTestSupport
import Testing

@Suite struct BatchTests {
    let workspace: Workspace
    var database: Database { workspace.database }

    init() throws { workspace = try Workspace() }

    private func entries(_ database: Database) throws -> [String] {
        let cursor = try database.cursor()
        try cursor.seekToFirst()
        var found: [String] = []
        while cursor.isValid {
            found.append(
                "\(String(decoding: cursor.key, as: UTF8.self))=\(String(decoding: cursor.value, as: UTF8.self))")
            try cursor.next()
        }
        return found
    }

    @Test func allOperationsOfABatchAreApplied() throws {
        try database.put(bytes("old"), bytes("0"))
        let batch = WriteBatch()
        batch.put(bytes("a"), bytes("1"))
        batch.put(bytes("b"), bytes("2"))
        batch.delete(bytes("old"))
        #expect(try entries(database) == ["old=0"])
        try database.write(batch)
        #expect(try entries(database) == ["a=1", "b=2"])
    }

    @Test func theLaterRecordOfAKeyWins() throws {
        let batch = WriteBatch()
        batch.put(bytes("a"), bytes("1"))
        batch.delete(bytes("a"))
        batch.delete(bytes("b"))
        batch.put(bytes("b"), bytes("2"))
        try database.write(batch, sync: true)
        #expect(try entries(database) == ["b=2"])
        #expect(batch.count == 4)
    }

    @Test func anEmptyBatchCanBeWritten() throws {
        let batch = WriteBatch()
        #expect(batch.isEmpty)
        #expect(batch.count == 0)
        #expect(batch.byteCount == 12)
        try database.write(batch)
        #expect(try entries(database) == [])
    }

    /// LevelDB has no call for the size of a batch, so Larder computes it. A log record is the batch and a header of 7
    /// bytes, so the log shows whether the computed size is right.
    @Test func countAndByteCountMatchTheLogRecord() throws {
        let batch = WriteBatch()
        batch.put([], [])
        for count in [1, 127, 128, 5000] {
            batch.put([UInt8](repeating: 1, count: count), [UInt8](repeating: 2, count: count))
            batch.delete([UInt8](repeating: 3, count: count))
        }
        #expect(batch.count == 9)
        #expect(!batch.isEmpty)
        // The batch must fit into one block of the log (32 KiB), so that its record is a single fragment.
        try #require(batch.byteCount < 32768 - 7)
        try database.write(batch)
        let log = try #require(try workspace.files(endingWith: ".log").last)
        let record = try Files.read("\(workspace.path)/\(log)")
        #expect(record.count == batch.byteCount + 7)
        // Bytes 8 to 11 of the representation, after the sequence number, count the records.
        #expect(record[15..<19].elementsEqual([9, 0, 0, 0]))
    }

    @Test func byteCountIncludesTheLengthPrefixOfLongValues() {
        let batch = WriteBatch()
        batch.put([1], [UInt8](repeating: 0, count: 1 << 14))
        #expect(batch.byteCount == 12 + 1 + 1 + 1 + 3 + (1 << 14))
        batch.clear()
        batch.put([1], [UInt8](repeating: 0, count: 1 << 21))
        #expect(batch.byteCount == 12 + 1 + 1 + 1 + 4 + (1 << 21))
    }

    @Test func clearEmptiesTheBatch() throws {
        let batch = WriteBatch()
        batch.put(bytes("a"), bytes("1"))
        batch.clear()
        #expect(batch.isEmpty)
        #expect(batch.byteCount == 12)
        batch.put(bytes("b"), bytes("2"))
        try database.write(batch)
        #expect(try entries(database) == ["b=2"])
    }

    @Test func aBatchCanBeAppliedRepeatedlyAndToSeveralDatabases() throws {
        let other = try workspace.open("other")
        let batch = WriteBatch()
        batch.put(bytes("a"), bytes("1"))
        try database.write(batch)
        try other.write(batch)
        try database.put(bytes("a"), bytes("2"))
        try database.write(batch)
        #expect(try entries(database) == ["a=1"])
        #expect(try entries(other) == ["a=1"])
        #expect(batch.count == 1)
    }

    @Test func aBatchWithATooLargeRecordIsRefused() throws {
        let byte = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
        defer { byte.deallocate() }
        // Never read, because it is refused for its length.
        let large = UnsafeRawBufferPointer(start: byte.baseAddress, count: WriteBatch.recordBytesMax + 1)
        let most = UnsafeRawBufferPointer(start: byte.baseAddress, count: WriteBatch.recordBytesMax)
        let endless = UnsafeRawBufferPointer(start: byte.baseAddress, count: Int.max)
        let one = UnsafeRawBufferPointer(start: byte.baseAddress, count: 1)
        let batch = WriteBatch()
        batch.put(bytes("a"), bytes("1"))
        batch.put(one, large)
        batch.delete(large)
        #expect(batch.count == 1)
        let error = failure { () throws(LevelDBError) in try database.write(batch) }
        #expect(error?.code == .invalidArgument)
        #expect(
            error?.message == "a key of 1 bytes with a value of 1073741825 bytes is larger than 1073741824 bytes")
        #expect(try entries(database) == [])
        batch.clear()
        try database.write(batch)
        for (key, value) in [(large, one), (one, most), (most, one), (endless, endless)] {
            batch.clear()
            batch.put(key, value)
            #expect(batch.isEmpty)
            let error = failure { () throws(LevelDBError) in try database.write(batch) }
            #expect(error?.code == .invalidArgument)
            #expect(error?.key == nil)
        }
    }
}
