import LarderEngine

/// What a server is started with.
package struct ServerConfiguration: Sendable {
    package var directory: String
    package var socketPath: String
    package var engine = EngineOptions()
    package var limits = Limits()
    /// Which events are published, as Redis' `notify-keyspace-events` has it.
    package var keyspaceEvents = ""
    /// Event loops, 1 to 64; connections are spread over them.
    package var threads = 1
    /// Whether SIGTERM, SIGINT and SIGHUP stop the server.
    package var handlesSignals = true
    /// What AUTH has to give; nil for none.
    package var password: [UInt8]?
    /// Called before a thread that may block runs a connection's commands. For tests, which make it wait.
    package var beforeColdSlice: (@Sendable () -> Void)?
    /// Called with the name of a deferred command before its work is done, on the thread that does it. For tests, which
    /// make it wait.
    package var beforeWork: (@Sendable (String) -> Void)?

    package init(directory: String, socketPath: String) {
        self.directory = directory
        self.socketPath = socketPath
    }

    /// Memory for hot entries where nothing is said: a 16th of the machine's, at least 16 MiB, at most 512 MiB.
    package static var defaultMemoryBytes: Int {
        let (pages, size) = (sysconf(Int32(_SC_PHYS_PAGES)), sysconf(Int32(_SC_PAGESIZE)))
        guard pages > 0, size > 0 else { return 16 << 20 }
        let (bytes, overflow) = Int(pages).multipliedReportingOverflow(by: Int(size))
        return min(max((overflow ? Int.max : bytes) / 16, 16 << 20), 512 << 20)
    }

    /// Bytes of the journal from which a checkpoint is due, at least 1 KiB.
    mutating func setCheckpoint(_ asked: Int) {
        let bytes = max(1024, asked)
        engine.checkpointBytes = bytes
        // Whole files of the journal go when a checkpoint is done: a few for each.
        engine.journalSegmentBytes = min(engine.journalSegmentBytes, max(64 << 10, bytes / 4))
    }
}
