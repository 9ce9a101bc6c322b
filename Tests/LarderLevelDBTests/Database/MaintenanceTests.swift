import LarderLevelDB
import Testing

@Suite struct MaintenanceTests {
    let workspace: Workspace
    var database: Database { workspace.database }

    init() throws { workspace = try Workspace(Options(compression: .none)) }

    private func fill() throws {
        for number in 0..<1000 { try database.put(key(number), [UInt8](repeating: 1, count: 1000)) }
    }

    @Test func compactionFreesTheSpaceOfDeletedEntries() throws {
        try fill()
        try database.compact()
        for number in 0..<1000 { try database.delete(key(number)) }
        try database.compact()
        // A single compaction does not always free all of the space.
        try database.compact()
        #expect(try database.tableBytes < 1000)
    }

    @Test func compactingAKeyRangeKeepsAllEntries() throws {
        try fill()
        try database.compact(from: key(100), to: key(200))
        try database.compact(from: nil, to: key(200))
        try database.compact(from: key(900), to: nil)
        try database.compact(from: [], to: [])
        try database.compact(from: key(200), to: key(100))
        for number in 0..<1000 { #expect(try database.get(key(number)) != nil) }
    }
}
