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
}
