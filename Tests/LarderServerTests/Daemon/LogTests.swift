import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServices

@Suite struct LogTests {
    private func lines(_ reading: Int32) -> [String] {
        var received: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = read(reading, &chunk, chunk.count)
            guard count > 0 else { break }
            received += chunk.prefix(count)
        }
        return String(decoding: received, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// If no process reads the pipe, logging continues: the first lines keep their order, and later lines are dropped
    /// and counted.
    @Test func unreadLogLinesAreDroppedAndCounted() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (reading, writing) = (ends[0], ends[1])
        let log = Log(least: .info, format: .systemd, descriptor: writing)
        let text = String(repeating: "x", count: 1000)
        let count = 1000
        for index in 0..<count { log.info("\(index) \(text)") }
        // Reads until the pipe is closed, after the log has written everything.
        let read = Guarded<[String]>([])
        let thread = WorkThread(name: "reader") { [self] in read.value = lines(reading) }
        while !log.flush() {}
        log.info("afterwards")
        while !log.flush() {}
        close(writing)
        thread.join()
        close(reading)
        let seen = read.value
        let kept = seen.filter { $0.hasSuffix(text) }
        #expect(kept.enumerated().allSatisfy { $1.hasPrefix("<6>\($0) ") })
        #expect(kept.count * 1004 > LogWriter.bytesMax && kept.count < count)
        #expect(
            Array(seen.dropFirst(kept.count)) == [
                "<4>\(count - kept.count) lines were lost here, because this log was not read", "<6>afterwards",
            ])
    }

    /// A reader gets every line completely.
    @Test func aReaderGetsAllLogLines() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let log = Log(least: .info, format: .systemd, descriptor: ends[1])
        var chunk = [UInt8](repeating: 0, count: 100)
        for index in 0..<100 {
            log.info("\(index)")
            while !log.flush() {}
            let count = read(ends[0], &chunk, chunk.count)
            #expect(String(decoding: chunk.prefix(max(0, count)), as: UTF8.self) == "<6>\(index)\n")
        }
    }
}
