import LarderLevelDB
import LarderLevelDBFormat
import LarderTestSupport
import Testing

/// Tests of records that are appended to a file in LevelDB's log format, which manifests use too.
@Suite struct LogRecordTests {
    /// Appends records of all lengths near the end of a block, and a record of several blocks.
    @Test func appendedRecordsAreReadBack() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let path = place.path + "/000001.log"
        var random = SeededGenerator(seed: 1)
        let lengths = Array(32_700...32_780) + [0, 1, 100_000] + Array((1...40).map { _ in random.below(5_000) })
        let records = lengths.map { random.bytes(count: $0) }
        var bytes: [UInt8] = []
        for record in records { bytes += LogScan.encode(record, at: bytes.count) }
        try Files.write(path, bytes)
        var found: [[UInt8]] = []
        let scan = try LogScan.scan(path) { record in
            found.append(Array(record))
            return nil
        }
        #expect(found == records)
        #expect(scan.problem == nil && scan.goodBytes == bytes.count)
    }
}
