import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that a manifest refers only to tables whose names are durable: a power failure could remove other names.
@Suite(.enabled(if: FaultLibrary.isAvailable)) struct ManifestOrderTests {
    /// The names of tables that are not durable yet, because their directory was not synced.
    private struct Names {
        private var directories: [UInt64: String] = [:]
        private var files: [UInt64: String] = [:]
        private var unsynced: [String: [String: Int]] = [:]
        /// The number of writes to manifests, and the number of them that followed the creation of a table.
        private(set) var edits = 0
        private(set) var editsBehindTables = 0
        private(set) var violations: [String] = []
        private var made = 0

        private static func directory(of name: String) -> String {
            name.lastIndex(of: "/").map { String(name[..<$0]) } ?? ""
        }

        private static func renamed(_ name: String, _ from: String, _ to: String) -> String {
            name == from || name.hasPrefix(from + "/") ? to + name.dropFirst(from.count) : name
        }

        mutating func take(_ record: FileTrace.Record) {
            switch record.event {
            case .attach(let root): directories[root] = ""
            case .makeDirectory(let file, let name): directories[file] = name
            case .create(let file, let name):
                files[file] = name
                guard name.hasSuffix(".ldb") else { return }
                unsynced[Self.directory(of: name), default: [:]][name] = record.position
                made += 1
            case .rename(let from, let to):
                directories = directories.mapValues { Self.renamed($0, from, to) }
                files = files.mapValues { Self.renamed($0, from, to) }
            case .unlink(let name): unsynced[Self.directory(of: name)]?[name] = nil
            case .synced(let file, let begin):
                guard let directory = directories[file] else { return }
                unsynced[directory] = unsynced[directory]?.filter { $0.value > begin }
            case .write(let file, _, _):
                guard let name = files[file], name.contains("/MANIFEST-") else { return }
                edits += 1
                if made > 0 { editsBehindTables += 1 }
                made = 0
                for table in unsynced[Self.directory(of: name), default: [:]].keys {
                    violations.append("\(name) was written to before the name of \(table) was synced")
                }
            default: break
            }
        }
    }

    @Test func levelDBSyncsTablesBeforeTheManifestNamesThem() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place, traceBytes: 256 << 20)
        let daemon = try DaemonProcess(["--checkpoint", "4M"], in: place, faults: faults)
        let client = try daemon.connect()
        var random = SeededGenerator(seed: 1)
        for round in 0..<6 {
            for key in 0..<60 {
                let value = Incompressible.bytes(count: 100_000, &random)
                let words = ["SET", "k\(key):\(round % 2)"].map { Array($0.utf8) } + [value]
                #expect(try client.call(encodeRequest(words)) == Array("+OK\r\n".utf8))
            }
            // Opening a snapshot makes the larder write to LevelDB.
            for word in ["OPEN", "CLOSE"] { #expect(try !client.call("SNAPSHOT \(word)").hasPrefix("-")) }
        }
        try daemon.stop()
        try #require(faults.isTraceComplete)
        var names = Names()
        for record in FileTrace(faults.trace).records() { names.take(record) }
        #expect(names.violations.isEmpty, "\(names.violations.prefix(3))")
        #expect(names.editsBehindTables > 2, "\(names.edits) \(names.editsBehindTables)")
    }
}
