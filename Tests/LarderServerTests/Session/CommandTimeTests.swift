import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// A clock that advances by a millisecond with each reading of the wall clock, and only then. Commands that share one
/// reading therefore run at the same time.
///
/// Thread-safe. `@unchecked Sendable`: all state is guarded by the lock.
private final class TickingTimeSource: TimeSource, @unchecked Sendable {
    private let lock = Lock()
    private var ticks: Int64 = 0

    func wallMilliseconds() -> Int64 {
        lock.withLock {
            ticks += 1
            return 1_700_000_000_000 + ticks
        }
    }

    func monotonicMilliseconds() -> Int64 { lock.withLock { 1_000_000 + ticks } }
}

@Suite struct CommandTimeTests {
    private func requests(_ lines: [String]) -> [UInt8] {
        lines.flatMap { encodeRequest($0.split(separator: " ").map(String.init)) }
    }

    /// Regression test: all commands of a pipeline used the time at which their bytes had arrived.
    @Test func expiryIsCheckedAgainAfterSlowCommandsOfAPipeline() throws {
        let server = try SocketlessServer(time: TickingTimeSource())
        let client = server.connect()
        _ = client("SET bits x")
        client.feed(requests(["SET k v PX 60"] + Array(repeating: "BITCOUNT bits", count: 100) + ["GET k"]))
        server.commit()
        #expect(client.takeSendable().hasSuffix(Wire.int(4) + Wire.null))
    }

    @Test("an entry's lifetime starts with its own command, not with slow commands before it")
    func lifetimesStartAtTheirOwnCommandInAPipeline() throws {
        let server = try SocketlessServer(time: TickingTimeSource())
        let client = server.connect()
        _ = client("SET bits x")
        client.feed(
            requests(Array(repeating: "BITCOUNT bits", count: 600) + ["SET k v PX 500", "BITCOUNT bits", "GET k"]))
        server.commit()
        #expect(client.takeSendable().hasSuffix(Wire.ok + Wire.int(4) + Wire.bulk("v")))
        // The next pipeline reads the clock again, instead of using the time of the previous one.
        client.feed(requests(["GET k"]))
        #expect(client.takeSendable() == Wire.bulk("v"))
    }

    /// Quick commands share one reading of the clock, but only for a short time, and not across a slow command.
    @Test(
        "quick commands share one reading of the clock for a short time",
        arguments: ["GET bits", "SET bits x", "EXISTS bits", "PING"])
    func quickCommandsShareATimeForAShortWhile(_ line: String) throws {
        let server = try SocketlessServer(time: TickingTimeSource())
        let client = server.connect()
        _ = client("SET bits x")
        client.feed(requests(["SET k v PX 20"] + Array(repeating: line, count: 64 * 30) + ["GET k"]))
        server.commit()
        #expect(client.takeSendable().hasSuffix(Wire.null))
    }

    /// Commands that copy many bytes read the clock again.
    @Test func commandsThatCopyManyBytesReadTheClockAgain() throws {
        let server = try SocketlessServer(time: TickingTimeSource())
        let client = server.connect()
        let long = String(repeating: "x", count: 100_000)
        client.feed(encodeRequest(["SET", "long", long]))
        server.commit()
        _ = client.takeSendable()
        for words in [["GET", "long"], ["SET", "long", long], ["MGET", "long", "long"]] {
            client.feed(requests(["SET k v PX 20"]))
            client.feed(Array(repeating: encodeRequest(words), count: 40).flatMap { $0 } + requests(["GET k"]))
            server.commit()
            #expect(client.takeSendable().hasSuffix(Wire.null))
        }
    }
}
