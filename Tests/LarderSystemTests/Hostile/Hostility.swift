import LarderPlatform
import LarderTestSupport
import Testing

/// The amount of work of the hostile clients: reduced in ordinary tests, full with `make hostile`.
enum Hostility {
    static let isFull = TestSetting.hostile.isSet

    static let valueBytes = isFull ? 512 << 20 : 64 << 20
    /// The maximum amount of memory for building four values of `length` bytes at the same time; see docs/Protocol.md.
    static func builtValues(_ length: Int) -> Int { 17 * length / 2 + (64 << 20) }
    static let arguments = isFull ? 1_000_000 : 100_000
    static let pipelined = isFull ? 1_000_000 : 100_000
    static let subscribers = isFull ? 2_000 : 200

    /// The number of connections: the daemon's own limit of 10,000, less one for the probe and one for queries. It is
    /// lower in ordinary tests, or if the system does not allow this process that many additional descriptors. The
    /// daemon is a separate process, with its own descriptors.
    static var connections: Int {
        let allowed = ResourceLimit.openFiles.read().map { Int(clamping: $0.rlim_cur) } ?? 256
        return isFull ? min(9_998, max(50, allowed - 1_000)) : min(1_000, max(50, allowed / 2 - 1_000))
    }

    /// Fails if the daemon used more than `most` bytes of memory since ``DaemonProcess/forgetPeak()``; does nothing if
    /// the system does not report it.
    static func expectPeak(
        of daemon: DaemonProcess, atMost most: Int, _ what: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        guard let peak = daemon.peakResidentBytes else { return }
        print("hostile clients, \(what): at most \(peak >> 20) MiB in memory, allowed are \(most >> 20)")
        if TestSetting.sanitized.isSet { return }
        #expect(peak <= most, "\(what): \(peak) bytes in memory", sourceLocation: sourceLocation)
    }
}

/// A well-behaved client that runs concurrently with the others. It repeatedly writes a number and reads it back, and
/// records an error if it is not served or reads another value.
///
/// Thread-safe. `@unchecked Sendable`: the state is guarded by the lock, and only the thread uses the connection.
final class ProbeClient: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var rounds = 0
    private var longestMicroseconds: Int64 = 0
    private var failure: (any Error)?
    private var isStopping = false
    private var thread: WorkThread?
    private let client: SocketClient

    init(_ daemon: DaemonProcess) throws {
        client = try daemon.connect()
        thread = WorkThread(name: "probe") { [self] in
            do {
                while !lock.withLock({ isStopping }) { try serve() }
            } catch {
                lock.withLock {
                    failure = error
                    changed.broadcast()
                }
            }
        }
    }

    private func serve() throws {
        let number = lock.withLock { rounds }
        let start = Self.microseconds
        let stored = try client.call("SET probe \(number)")
        let found = try client.call("GET probe")
        let wanted = "$\("\(number)".utf8.count)\r\n\(number)\r\n"
        guard stored == "+OK\r\n", found == wanted else {
            throw ChildProcess.Failure(description: "the probe got \(stored) and \(found), wanted \(wanted)")
        }
        let duration = Self.microseconds - start
        lock.withLock {
            rounds += 1
            longestMicroseconds = max(longestMicroseconds, duration)
            changed.broadcast()
        }
    }

    private static var microseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// The number of rounds in which the client was served.
    var served: Int { lock.withLock { rounds } }

    /// Waits until the client was served `count` more times. Throws if it was not.
    func waitForRounds(_ count: Int) throws {
        try lock.withLock { () throws(ChildProcess.Failure) in
            let goal = rounds + count
            while rounds < goal {
                if let failure { throw ChildProcess.Failure(description: "the probe: \(failure)") }
                guard changed.wait(lock, milliseconds: 60_000) else {
                    throw ChildProcess.Failure(description: "the probe is not served any more")
                }
            }
        }
    }

    /// Stops the client, and prints its longest wait, which depends on the machine. Throws if the client was not served
    /// correctly.
    func stop(_ what: String) throws {
        lock.withLock { isStopping = true }
        thread?.join()
        thread = nil
        let (rounds, longest, failure) = lock.withLock { (self.rounds, longestMicroseconds, self.failure) }
        if let failure { throw ChildProcess.Failure(description: "the probe: \(failure)") }
        print("hostile clients, \(what): a probe was served \(rounds) times, \(longest) µs at the longest")
    }
}

/// A value that is too large to be built or compared byte by byte in the tests: one block, repeated.
struct PatternedValue {
    let block: [UInt8]
    let count: Int

    init(count: Int, seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        block = generator.bytes(count: 1 << 16)
        self.count = count
    }

    /// Sends the value as a bulk string, block by block. `between` runs after every 256th block.
    func send(to client: SocketClient, between: () throws -> Void) throws {
        try client.send(Array("$\(count)\r\n".utf8))
        var left = count
        var blocks = 0
        while left > 0 {
            try client.send(left >= block.count ? block : Array(block[..<left]))
            left -= min(left, block.count)
            blocks += 1
            if blocks % 256 == 0 { try between() }
        }
        try client.send([0x0D, 0x0A])
    }

    /// Whether `reply` is this value as a bulk string.
    func isReply(_ reply: [UInt8]) -> Bool {
        let head = Array("$\(count)\r\n".utf8)
        guard reply.count == head.count + count + 2, Array(reply[..<head.count]) == head else { return false }
        return reply.withUnsafeBytes { bytes in
            block.withUnsafeBytes { block in
                stride(from: 0, to: count, by: block.count).allSatisfy { offset in
                    let most = min(block.count, count - offset)
                    guard let found = bytes.baseAddress, let wanted = block.baseAddress else { return false }
                    return memcmp(found + head.count + offset, wanted, most) == 0
                }
            }
        }
    }
}
