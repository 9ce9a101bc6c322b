import LarderPlatform

/// Reads lines from a log that the program under test writes into a pipe.
///
/// One thread reads. `@unchecked Sendable`: mutable state is used by that thread only.
public final class LogReader: @unchecked Sendable {
    public let writeEnd: Int32
    private let readEnd: Int32
    private var received: [UInt8] = []
    private static let patienceMilliseconds: Int64 = 120_000

    public init() throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw SocketClient.Failure(description: "pipe failed") }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    deinit { close(readEnd) }

    public func closeWriteEnd() { close(writeEnd) }

    /// Waits for the next line that contains `text`; nil if the log ends without one, or after two minutes.
    public func line(containing text: String) -> String? {
        let deadline = MonotonicClock.milliseconds() + Self.patienceMilliseconds
        while true {
            while let end = received.firstIndex(of: 0x0A) {
                let line = String(decoding: received[..<end], as: UTF8.self)
                received.removeFirst(end + 1)
                if line.contains(text) { return line }
            }
            var state = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
            guard poll(&state, 1, Int32(clamping: deadline - MonotonicClock.milliseconds())) > 0 else { return nil }
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = read(readEnd, &chunk, chunk.count)
            guard count > 0 else { return nil }
            received += chunk.prefix(count)
        }
    }
}
