import Larder
import LarderPlatform
import LarderTestSupport
import Testing

/// Kills a program with an outbox while it saves and delivers. No acknowledged write is lost, and the writes of each
/// key keep their order.
@Suite(.timeLimit(.minutes(10))) struct OutboxCrashTests {
    private static let keyCount = 5
    private static let rounds = 6

    /// Appends a line to a file, which keeps it when the process is killed.
    private static func note(_ line: String, in file: CInt) {
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    }

    private static func appending(_ path: String) -> CInt {
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    }

    /// Saves increasing numbers, records each acknowledged and each delivered one, and kills itself at some point.
    private static func work(in directory: String, from first: Int, until last: Int) async throws {
        let server = appending(directory + "/server")
        let acknowledged = appending(directory + "/acknowledged")
        let cache = try await Cache(named: "orders", policy: .never, directory: directory + "/larder")
        let outbox = try Outbox<Int>(cache) { delivery in
            note("\(delivery.key) \(delivery.value ?? 0) \(delivery.token)", in: server)
            if delivery.value == last { kill(getpid(), SIGKILL) }
        }
        for number in first... {
            let key = "key:\(number % keyCount)"
            try await outbox.save(number, forKey: key)
            note("\(key) \(number)", in: acknowledged)
            if number == last + 50 { kill(getpid(), SIGKILL) }
        }
    }

    private static func lines(_ path: String) throws -> [[Substring]] {
        String(decoding: try Files.read(path), as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
    }

    @Test func noAcknowledgedWriteIsLostInAKill() async throws {
        let temporary = try TemporaryDirectory(inMemory: true)
        let directory = temporary.path
        var first = 1
        for round in 0..<Self.rounds {
            let last = first + 40 * round + 7
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [directory = directory as String, first = first as Int, last = last as Int] in
                try await OutboxCrashTests.work(in: directory, from: first, until: last)
            }
            first = (try Self.lines(directory + "/acknowledged").compactMap { Int($0[1]) }.max() ?? first) + 2
        }
        let server = Recorder<[Substring]>()
        do {
            let cache = try await Cache(named: "orders", policy: .never, directory: directory + "/larder")
            let outbox = try Outbox<Int>(cache) { delivery in
                server.add(
                    [Substring(delivery.key), Substring("\(delivery.value ?? 0)"), Substring(delivery.token)])
            }
            for key in 0..<Self.keyCount { await outbox.untilDelivered("key:\(key)") }
            await outbox.close()
        }
        let delivered = try Self.lines(directory + "/server") + server.all
        var written: [Substring: Int] = [:]
        for line in try Self.lines(directory + "/acknowledged") { written[line[0]] = Int(line[1]) }
        #expect(written.count == Self.keyCount)
        var latest: [Substring: Int] = [:]
        var numbers: [Substring: Substring] = [:]
        for line in delivered {
            let number = try #require(Int(line[1]))
            #expect(number >= latest[line[0]] ?? 0, "\(line[0]) goes back to \(number)")
            latest[line[0]] = number
            // A token belongs to one write.
            #expect(numbers.updateValue(line[1], forKey: line[2]) ?? line[1] == line[1])
        }
        for (key, number) in written { #expect(latest[key] ?? 0 >= number, "\(key): \(number) was lost") }
        #expect(Set(numbers.values).count == numbers.count, "a write had two tokens")
    }
}
