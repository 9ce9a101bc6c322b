import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct KeyTests {
    @Test func aKeyKeepsItsBytes() {
        for count in [0, 1, 255, 4096, Key.bytesMax] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let key = Key(bytes)
            #expect(Array(key.bytes) == bytes)
            #expect(key.stored == [1] + bytes)
            #expect(Key(stored: key.stored) == key)
        }
        #expect(Key("ключ") == Key(Array("ключ".utf8)))
        #expect(Key("") == Key([]))
    }

    @Test func theOrderOfStoredKeysIsTheOrderOfBytes() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let keys: [[UInt8]] = [[], [0], [0, 0], [0, 255], [1], [127], [128], [255], [255, 0], [255, 255]]
        for key in keys.shuffled() {
            try database.commit([Key(key)], loading: .none) { update in
                key.withUnsafeBytes { update.put(0, payload: $0) }
            }
        }
        let cursor = try #require(try database.cursor())
        for key in keys {
            #expect(try cursor.next())
            #expect(try Array(cursor.key().bytes) == key)
            #expect(try Array(cursor.record().payload) == key)
        }
        #expect(try !cursor.next())
    }

    @Test func keysOfEveryLengthAreStored() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let lengths = [0, 1, 100, 65_535, 65_536]
        for length in lengths {
            try database.commit([Key([UInt8](repeating: 0xFF, count: length))], loading: .records) { update in
                Array("\(length)".utf8).withUnsafeBytes { update.put(0, payload: $0) }
            }
        }
        larder.close()
        for length in lengths {
            let key = Key([UInt8](repeating: 0xFF, count: length))
            #expect(try larder.database().get(key)?.text == "\(length)")
        }
        #expect(try larder.database().count(includingExpired: false) == lengths.count)
    }

    @Test func largeValuesAreStored() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let value = [UInt8](repeating: 0xA5, count: 9 << 20)
        for key in ["a", "b"] {
            try database.commit([Key(key)], loading: .records) { update in
                value.withUnsafeBytes { update.put(0, payload: $0) }
            }
        }
        #expect(try database.get(Key("a")).map { $0.payload.elementsEqual(value) } == true)
        larder.close()
        #expect(try larder.database().get(Key("b")).map { $0.payload.elementsEqual(value) } == true)
    }

    @Test func keysAreShownReadably() {
        #expect("\(Key("user:1"))" == "user:1")
        #expect("\(Key("ключ"))" == "ключ")
        #expect("\(Key([0x61, 0, 0xFF]))" == "a\\x00\\xff")
        #expect("\(Key("a\\\n"))" == "a\\x5c\\x0a")
        let long = "\(Key(String(repeating: "x", count: 70)))"
        #expect(long == String(repeating: "x", count: 64) + "…")
    }

    @Test func numbersAreStoredInBigEndianOrder() {
        var bytes: [UInt8] = []
        BigEndian.append(0x0102_0304_0506_0708, to: &bytes)
        #expect(bytes == [1, 2, 3, 4, 5, 6, 7, 8])
        bytes.withUnsafeBytes { bytes in
            #expect(BigEndian.read(bytes, at: 0) == 0x0102_0304_0506_0708)
            #expect(BigEndian.read(bytes, at: 4, count: 4) == 0x0506_0708)
            for (offset, count) in [(1, 8), (8, 1), (-1, 1), (0, 9), (0, -1), (.max, 8)] {
                #expect(BigEndian.read(bytes, at: offset, count: count) == nil)
            }
        }
    }
}
