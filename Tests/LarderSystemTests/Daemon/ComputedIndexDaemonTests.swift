import Larder
import LarderClient
import LarderTestSupport
import Testing

/// Tests that the daemon and larderctl accept a larder with an index that only a program of the library can compute.
@Suite struct ComputedIndexDaemonTests {
    struct Visit: Codable, Sendable { var second: Int }

    private static let byDay = Index.computed("byDay", version: 1) { (visit: Visit) in [visit.second / 100] }

    private let name = Index(Self.byDay).name

    private func open(_ larder: String, _ indexes: [Index] = [Index(Self.byDay)]) throws -> Cache {
        var options = CacheOptions()
        options.backgroundMaintenance = false
        return try Cache(named: "0", policy: .never, indexes: indexes, directory: larder, options: options)
    }

    /// Checks the keys of a query, and that it uses the index after the next checkpoint.
    /// - Parameter isIncomplete: whether the index must be built anew first.
    private func expect(_ keys: [String], in cache: Cache, isIncomplete: Bool) throws {
        let found = cache.query(Visit.self).where(Self.byDay, 3)
        #expect(try found.keys() == keys)
        if isIncomplete { #expect(try found.explain().contains("no index is used")) }
        _ = try cache.sweep()
        #expect(try found.keys() == keys && found.explain().contains("the index byDay-"))
    }

    @Test func otherProgramsKeepComputedIndexes() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let larder = directory.path + "/larder"
        func larderctl(_ words: String...) throws -> String {
            let result = try ChildProcess.run(try DaemonProcess.program("larderctl"), words)
            #expect(result.end == .exited(0), "\(result)")
            return result.output
        }
        func fill() throws {
            let cache = try open(larder)
            for number in 0..<20 { try cache.set(Visit(second: number * 50), forKey: "v\(number)") }
            _ = try cache.sweep()
            cache.close()
        }
        try fill()
        #expect(try larderctl("check", larder).hasPrefix("no problems: 1 database, 20 entries"))
        let daemon = try DaemonProcess(in: directory)
        let client = try daemon.connect()
        let index = try client.call("INDEX \(name)")
        for text in ["@computed byDay version 1", "undeclared", "entries\r\n:20"] {
            #expect(index.contains(text), "\(index)")
        }
        try client.send(["QUERY", "COUNT", "WHERE", "@computed byDay version 1", "=", "3"])
        #expect(String(decoding: try client.receive(), as: UTF8.self).hasPrefix("-ERR unknown field '@computed"))
        try client.send(["SET", "new", #"{"second":301}"#])
        #expect(try client.receive() == Array("+OK\r\n".utf8))
        #expect(try client.call("QUERY COUNT WHERE second BETWEEN 300 399") == ":3\r\n")
        let remote = try BlockingLarderClient(socketPath: daemon.socketPath)
        let error = #expect(throws: LarderClientError.self) { try remote.declareIndexes([Index(Self.byDay)]) }
        #expect(error?.code == .invalidArgument && error?.message.contains("as a property") == true)
        remote.close()
        let backups = directory.path + "/backups"
        try client.send(["BACKUP", backups])
        #expect(String(decoding: try client.receive(), as: UTF8.self).first != "-")
        client.close()
        #expect(try daemon.stop() == .exited(0))
        _ = try larderctl("restore", backups, directory.path + "/restored")
        for place in [larder, directory.path + "/restored"] {
            _ = try larderctl("check", place)
            let cache = try open(place)
            // At its end, the daemon has written all entries to LevelDB.
            try expect(["new", "v6", "v7"], in: cache, isIncomplete: place == larder)
            cache.close()
        }
        let second = try DaemonProcess(in: directory)
        #expect(try second.connect().call("INDEX DROP \(name)") == "+OK\r\n")
        #expect(try second.connect().call("INDEX \(name)").contains("there is no index"))
        #expect(try second.stop() == .exited(0))
        let cache = try open(larder, [])
        #expect(try cache.query(Visit.self).where(Self.byDay, 3).keys() == ["new", "v6", "v7"])
    }
}
