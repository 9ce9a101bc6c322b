import LarderPlatform
import Testing

@testable import LarderEngine

@Suite struct JournalBatchTests {
    private func put(_ batch: JournalBatch, _ key: [UInt8], _ record: [UInt8], _ sequence: UInt64) {
        key.withUnsafeBytes { key in record.withUnsafeBytes { batch.put(key: key, record: $0, sequence: sequence) } }
    }

    @Test func aMarkerIsWrittenOnlyWhenTheSelectedDatabaseChanges() {
        let batch = JournalBatch()
        batch.select(database: "books", number: 1, epoch: 1)
        let marked = batch.byteCount
        for _ in 0..<3 { batch.select(database: "books", number: 1, epoch: 1) }
        #expect(batch.byteCount == marked && batch.isEmpty)
        put(batch, [1], [2], 5)
        #expect(batch.byteCount == marked + 11)
        #expect(batch.firstSequence == 5 && batch.lastSequence == 5 && !batch.isEmpty)
        batch.select(database: "books", number: 2, epoch: 2)
        #expect(batch.byteCount == marked + 11 + 15)
        batch.clear()
        #expect(batch.isEmpty && batch.firstSequence == 0 && batch.lastSequence == 0)
        // Each frame starts with a marker that names its first database.
        batch.select(database: "books", number: 2, epoch: 2)
        #expect(batch.byteCount == marked)
    }

    @Test func clearingABatchKeepsItsBufferUpToALimit() {
        let batch = JournalBatch()
        batch.select(database: "0", number: 0, epoch: 1)
        put(batch, [1], [UInt8](repeating: 0, count: 1 << 20), 1)
        let kept = batch.memoryByteCount
        batch.clear()
        #expect(batch.memoryByteCount == kept && kept >= 1 << 20)
        batch.select(database: "0", number: 0, epoch: 1)
        put(batch, [1], [UInt8](repeating: 0, count: 6 << 20), 1)
        batch.clear()
        #expect(batch.memoryByteCount <= JournalBatch.keptBytesMax)
        batch.select(database: "0", number: 0, epoch: 1)
        put(batch, [1], [2], 1)
        #expect(batch.defect == 0 && !batch.isEmpty)
    }

    /// A batch with an invalid part is refused as a whole, rather than written without that part.
    @Test func aBatchWithAnInvalidPartIsRefused() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        let makeDefective: [(JournalBatch) -> Void] = [
            { put($0, [UInt8](repeating: 0, count: Key.bytesMax + 1), [1], 9) },
            { batch in
                [UInt8](repeating: 0, count: Key.bytesMax + 1).withUnsafeBytes { batch.remove(key: $0, sequence: 9) }
            },
            { put($0, [1], [1], 6) },
            { $0.select(database: "", number: 7, epoch: 1) },
            { $0.select(database: String(repeating: "x", count: 256), number: 7, epoch: 1) },
        ]
        let batch = JournalBatch()
        for spoil in makeDefective {
            batch.clear()
            batch.select(database: "0", number: 0, epoch: 1)
            put(batch, [1], [2], 7)
            spoil(batch)
            put(batch, [3], [4], 10)
            #expect(batch.defect != 0)
            #expect(throws: FileError.self) { try journal.append(batch) }
        }
        batch.clear()
        // The batch is refused, because no database was selected.
        put(batch, [1], [2], 7)
        #expect(throws: FileError.self) { try journal.append(batch) }
        batch.clear()
        // A batch with the longest possible database name is accepted.
        batch.select(database: String(repeating: "x", count: 255), number: 0, epoch: .max)
        put(batch, [UInt8](repeating: 1, count: Key.bytesMax), [], 11)
        try journal.append(batch)
        #expect(try history.open().groups().groups.map(\.last) == [11])
    }
}
