import LarderPlatform
import LarderTestSupport
import Testing

/// Each kind of system call fails on each kind of file of a larder: once, twice in a row, or permanently. Meanwhile,
/// clients write, purge tags, load functions and make checkpoints. After SIGKILL and a start without faults, every
/// acknowledged operation is in effect, and nothing else is missing. "Any call" with "twice" means a call that fails
/// together with the next call.
///
/// `LARDER_CONTROL_POINTS=all` tries every combination; a number tries that many, chosen by `LARDER_SEED`.
@Suite(.enabled(if: FaultLibrary.isAvailable)) struct EveryFileFaultTests {
    private struct Fault {
        let name: String
        let calls: FileCalls
        var action: FaultControl.Rule.Action?
    }

    private static let faults =
        calls.map { Fault(name: $0.name, calls: $0.calls) } + [
            Fault(name: "any call", calls: .all), Fault(name: "any call that changes the disk", calls: .changing),
            Fault(name: "a short write", calls: .write, action: .shorten),
            Fault(name: "an empty write", calls: .write, action: .empty),
        ]
    private static let calls: [(name: String, calls: FileCalls)] = [
        ("open", .open), ("create", .create), ("read", .read), ("write", .write), ("fsync", .sync),
        ("fsync of a directory", .syncDirectory), ("ftruncate", .truncate), ("fallocate", .allocate),
        ("rename", .rename), ("link", .link), ("unlink", .unlink), ("opendir", .list), ("readdir", .listNext),
        ("stat", .stat), ("access", .access), ("close", .close), ("mmap", .map),
    ]
    private static let files = ["", "LEDGER", "JOURNAL", "SYNCED", "SEQUENCES", "TIME", "POINTER", "books/"]

    enum Extent: CaseIterable {
        case once, twice, permanently

        var count: UInt64 {
            switch self {
            case .once: 1
            case .twice: 2
            case .permanently: .max
            }
        }
    }

    private struct Combination: CustomStringConvertible {
        let fault: Fault
        let file: String
        let extent: Extent
        let first: UInt64
        /// Whether checkpoints run all the time.
        let checkpoints: Bool

        var description: String {
            "\(fault.name) on '\(file)' fails \(extent), from call \(first) on"
                + (checkpoints ? ", in checkpoints" : "")
        }

        var rule: FaultControl.Rule {
            var rule = FaultControl.Rule.failing(
                fault.calls, extent == .permanently ? EIO : ENOSPC, path: file, except: "LOCK", from: first,
                count: extent.count)
            if let action = fault.action { rule.action = action }
            return rule
        }
    }

    private static func combinations() -> [Combination] {
        var random = SeededGenerator(seed: testSeed())
        var all: [Combination] = []
        for fault in faults {
            for file in files {
                for extent in Extent.allCases {
                    // LevelDB would retry such a write forever.
                    if fault.name == "an empty write", extent == .permanently { continue }
                    let first = UInt64.random(in: 1...(file.isEmpty ? 60 : 6), using: &random)
                    all.append(
                        Combination(
                            fault: fault, file: file, extent: extent, first: first, checkpoints: random.oneIn(2)))
                }
            }
        }
        let wish = TestSetting.controlPoints.text
        if wish == "all" { return all }
        return Array(all.shuffled(using: &random).prefix(wish.flatMap(Int.init) ?? 24))
    }

    @Test("acknowledged operations survive faults of any file and a SIGKILL")
    func acknowledgedOperationsSurviveFaultsAndAKill() throws {
        var hits = 0
        let combinations = Self.combinations()
        for combination in combinations {
            let place = try TemporaryDirectory(inMemory: true)
            let faults = try FaultControl(in: place)
            let options = combination.checkpoints ? ["--checkpoint", "1K"] : []
            var daemon = try DaemonProcess(options, in: place, faults: faults)
            var model = Model()
            let client = try daemon.connect()
            #expect(try client.call("SELECT books") == "+OK\r\n")
            model.run(0..<12, client)
            #expect(model.doubtful.isEmpty, "nothing fails yet")
            faults.arm(combination.rule)
            model.run(12..<60, client)
            hits += faults.hits(slot: 0) > 0 ? 1 : 0
            let hit = faults.lastHit
            client.close()
            daemon.kill()
            faults.disarm()
            daemon = try DaemonProcess(options, in: place, faults: faults)
            let again = try daemon.connect()
            #expect(try again.call("SELECT books") == "+OK\r\n")
            let wrong = try model.differences(again)
            #expect(wrong.isEmpty, "\(combination): \(hit): \(wrong)")
            again.close()
            daemon.kill()
        }
        print("\(combinations.count) combinations, \(hits) with calls that were hit")
    }

    /// A mark in the file SYNCED records which segments must exist. If the file cannot be synced, removed or reopened,
    /// the mark cannot be replaced. These segments are then kept, because the mark would require them after a crash.
    @Test(
        "journal segments are kept while a mark that refers to them cannot be replaced",
        arguments: ["os", "everysecond", "always"]) func journalSegmentsStayIfTheirMarkCannotBeReplaced(
            _ durability: String
        ) throws
    {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        var daemon = try DaemonProcess(["--durability", durability], in: place, faults: faults)
        let client = try daemon.connect()
        for number in 0..<20 { #expect(try client.call("SET k\(number) v") == "+OK\r\n") }
        let mark = "SYNCED"
        faults.arm(.failing(.sync, EIO, path: mark, except: "0/", count: 1))
        faults.arm(.failing(.unlink, EIO, path: mark, except: "0/", count: 1), slot: 1)
        faults.arm(.failing([.open, .create], EIO, path: mark, except: "0/"), slot: 2)
        for number in 20..<80 {
            #expect(try client.call("SET k\(number) v") == "+OK\r\n")
            if number % 20 == 0 { _ = try client.call("SAVE") }
        }
        client.close()
        daemon.kill()
        for slot in 0..<3 { faults.disarm(slot: slot) }
        daemon = try DaemonProcess(["--durability", durability], in: place, faults: faults)
        let again = try daemon.connect()
        for number in 0..<80 { #expect(try again.call("GET k\(number)") == "$1\r\nv\r\n", "k\(number)") }
        again.close()
        daemon.kill()
    }
}

/// The expected results of acknowledged operations, and of operations whose outcome is unknown after errors.
private struct Model {
    private var values: [String: String] = [:]
    private var tags: [String: String] = [:]
    /// The other possible values of each key.
    private(set) var doubtful: [String: Set<String?>] = [:]
    /// The versions of the function library that may be stored.
    private var versions: Set<Int> = []

    private static func library(_ version: Int) -> String {
        "#!lua name=lib\nredis.register_function{function_name='f', callback=function() return \(version) end, "
            + "flags={'no-writes'}}"
    }

    mutating func run(_ steps: Range<Int>, _ client: SocketClient) {
        for step in steps {
            switch step % 12 {
            case 5, 11: purge("t\(step % 3)", client)
            case 8: _ = try? client.call("SAVE")
            case 9: load(step, client)
            default: set("k\(step % 10)", "v\(step)", "t\(step % 3)", client)
            }
        }
    }

    private mutating func set(_ key: String, _ value: String, _ tag: String, _ client: SocketClient) {
        if (try? client.call("SET \(key) \(value) TAGS 1 \(tag)")) == "+OK\r\n" {
            (values[key], tags[key]) = (value, tag)
            doubtful[key] = nil
        } else {
            doubtful[key, default: []].formUnion([value, values[key]])
        }
    }

    private mutating func purge(_ tag: String, _ client: SocketClient) {
        let concerned = tags.filter { $0.value == tag }.map(\.key)
        if (try? client.call("PURGE TAG \(tag)")) == "+OK\r\n" {
            for key in concerned { values[key] = nil }
            // A failed command may still have stored a key with the tag, which this purge has removed.
            for key in doubtful.keys { doubtful[key]?.insert(nil) }
        } else {
            for key in concerned { doubtful[key, default: []].formUnion([nil, values[key]]) }
        }
    }

    private mutating func load(_ version: Int, _ client: SocketClient) {
        let reply = try? client.call(["FUNCTION", "LOAD", "REPLACE", Self.library(version)])
        if reply == Array("$3\r\nlib\r\n".utf8) { versions = [version] } else { versions.insert(version) }
    }

    func differences(_ client: SocketClient) throws -> [String] {
        var wrong: [String] = []
        for number in 0..<10 {
            let key = "k\(number)"
            let reply = try client.call("GET \(key)")
            let expected = values[key].map { "$\($0.utf8.count)\r\n\($0)\r\n" } ?? "$-1\r\n"
            if reply == expected { continue }
            let others = (doubtful[key] ?? []).map { $0.map { "$\($0.utf8.count)\r\n\($0)\r\n" } ?? "$-1\r\n" }
            if !others.contains(reply) { wrong.append("\(key): \(reply), not \(expected) \(others)") }
        }
        let called = try client.call("FCALL f 0")
        if !versions.contains(where: { ":\($0)\r\n" == called }) { wrong.append("f: \(called), not \(versions)") }
        return wrong
    }
}
