import LarderLevelDB
import LarderPlatform

@testable import LarderEngine

// Access to LevelDB's contents without the engine.

extension EpochStore {
    func rawEntries() throws(LarderError) -> [(key: [UInt8], value: [UInt8])] {
        try access("test") { (database) throws(LevelDBError) in
            var found: [(key: [UInt8], value: [UInt8])] = []
            try database.scan { cursor in
                found.append((cursor.key, cursor.value))
                return true
            }
            return found
        }
    }

    func rawKeys() throws(LarderError) -> [[UInt8]] { try rawEntries().map(\.key) }

    /// Writes to LevelDB directly, without the engine.
    func rawPut(_ key: [UInt8], _ value: [UInt8]) throws(LarderError) { try rawWrite { $0.put(key, value) } }

    /// Removes a key from LevelDB directly, without the engine.
    func rawDelete(_ key: [UInt8]) throws(LarderError) { try rawWrite { $0.delete(key) } }

    private func rawWrite(_ change: (LarderLevelDB.WriteBatch) -> Void) throws(LarderError) {
        let batch = LarderLevelDB.WriteBatch()
        change(batch)
        try access("test") { (database) throws(LevelDBError) in try database.write(batch) }
    }
}
