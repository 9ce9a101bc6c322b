import LarderTestSupport
import Testing

/// Tests of the daemon's reports about itself, in its log and to clients.
@Suite struct DaemonReportTests {
    /// The log and INFO name the same allocator, which MEMORY PURGE uses.
    @Test("the log and INFO name the same allocator") func theAllocator() throws {
        let daemon = try DaemonProcess(["--log-level", "debug"])
        // This line is written before the line that reports that the daemon is ready.
        let line = try #require(
            daemon.process.errors.split(separator: "\n").first { $0.contains("allocator: ") })
        let client = try daemon.connect()
        let fields = try client.call("INFO memory").split(separator: "\r\n").map(String.init)
        let name = try #require(fields.first { $0.hasPrefix("mem_allocator:") }).dropFirst("mem_allocator:".count)
        if let version = line.split(separator: " jemalloc ").dropFirst().first {
            #expect(name == "jemalloc-" + version.prefix { $0 != "-" })
        } else {
            #expect(line.hasSuffix("the system's allocator") && name == "libc")
        }
        #expect(try client.call("MEMORY PURGE") == "+OK\r\n")
    }

    /// The line is logged for the first deadline that is not watched.
    @Test("exceeding --max-watched-deadlines is logged once") func exceedingMaxWatchedDeadlinesIsLoggedOnce() throws {
        let daemon = try DaemonProcess(["--max-watched-deadlines", "2", "--notify-keyspace-events", "Ex"])
        let client = try daemon.connect()
        for key in ["a", "b"] { #expect(try client.call("SET \(key) v EX 100") == "+OK\r\n") }
        #expect(!daemon.process.errors.contains("deadlines"))
        for key in ["c", "d"] { #expect(try client.call("SET \(key) v EX 100") == "+OK\r\n") }
        let line = try daemon.process.waitForErrorLine(containing: "have their own deadline")
        #expect(line.contains(" warning more than 2 entries") && line.contains("(--max-watched-deadlines)"), "\(line)")
        try daemon.stop()
        #expect(daemon.process.errors.split(separator: "have their own deadline").count == 2)
    }
}
