import LarderLevelDB
import LarderPlatform

@testable import LarderEngine

// Access to LevelDB's contents without the engine.

extension EpochStore {
    func rawEntries() throws(LarderError) -> [(key: [UInt8], value: [UInt8])] {
        try access("test") { (database) throws(LevelDBError) in
            let cursor = try database.cursor()
            defer { cursor.close() }
            var found: [(key: [UInt8], value: [UInt8])] = []
            try cursor.seekToFirst()
            while cursor.isValid {
                found.append((cursor.key, cursor.value))
                try cursor.next()
            }
            return found
        }
    }

    func rawKeys() throws(LarderError) -> [[UInt8]] { try rawEntries().map(\.key) }

    /// Writes to LevelDB directly, without the engine.
    func rawPut(_ key: [UInt8], _ value: [UInt8]) throws(LarderError) {
        try access("test") { (database) throws(LevelDBError) in try database.put(key, value) }
    }
}
