import LarderEngine
import LarderPlatform

/// The configuration with which a server starts.
package struct ServerConfiguration: Sendable {
    package var directory: String
    package var socketPath: String
    package var engine = EngineOptions()
    package var limits = Limits()
    /// The limit of the larder on the disk; nil for the default.
    package var diskBytes: DiskLimit?
    /// The limit in bytes, with the default; nil for none.
    package var diskBytesMax: Int? {
        guard let diskBytes else { return DiskBudget.standardBytes(for: directory) }
        return diskBytes.byteCount
    }
    /// Which events are published: Redis' `notify-keyspace-events`.
    package var keyspaceEvents = ""
    /// Event loops, 1 to 64; connections are spread over them.
    package var threads = 1
    /// Whether signals stop the server (SIGTERM, SIGINT, SIGHUP) or make it read its configuration again (SIGHUP).
    package var handlesSignals = true
    /// Commands that nobody may run.
    package var disabledCommands = CommandSet()
    /// Who may do what.
    package var rules = AccessRules()
    /// The password for AUTH; nil for none.
    package var password: [UInt8]?
    /// The file that it comes from; empty for none.
    package var passwordPath = ""
    /// The configuration file that was read; nil for none.
    package var filePath: String?
    /// Called before a thread that may block runs a connection's commands. Tests use it to make that thread wait.
    package var beforeColdSlice: (@Sendable () -> Void)?
    /// Called with the name of a deferred command before its work, on the thread that does it. Tests use it to make
    /// that thread wait.
    package var beforeWork: (@Sendable (String) -> Void)?

    /// Who may use the socket that the server makes.
    package var socketAccess = SocketAccess()
    /// The socket to listen on that the service manager has made; nil if the server makes it.
    package var passedSocket: PassedSocket?

    package init(directory: String, socketPath: String) {
        self.directory = directory
        self.socketPath = socketPath
    }

    /// What errors about the socket call the program, and its option.
    static let socketProgram = SocketFile.Name(program: "larderd", option: "--socket")

    /// The default memory for entries: a 16th of the machine's, at least 16 MiB, at most 512 MiB.
    package static var defaultMemoryBytes: Int {
        let (pages, size) = (sysconf(Int32(_SC_PHYS_PAGES)), sysconf(Int32(_SC_PAGESIZE)))
        guard pages > 0, size > 0 else { return 16 << 20 }
        let (bytes, overflow) = Int(pages).multipliedReportingOverflow(by: Int(size))
        return min(max((overflow ? Int.max : bytes) / 16, 16 << 20), 512 << 20)
    }

    /// The least that makes sense: every few writes are put into LevelDB then.
    static let checkpointBytesMin = 1 << 10
    private static let segmentBytesMin = 64 << 10

    /// How many bytes of journal make a checkpoint due, at least ``checkpointBytesMin``.
    mutating func setCheckpoint(_ asked: Int) {
        engine.checkpointBytes = asked
        // A checkpoint removes whole files of the journal, so there are a few for each.
        engine.journalSegmentBytes = min(engine.journalSegmentBytes, max(Self.segmentBytesMin, asked / 4))
    }
}
