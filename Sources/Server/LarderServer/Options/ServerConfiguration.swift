import LarderEngine
import LarderPlatform

/// The initial configuration of a server.
package struct ServerConfiguration: Sendable {
    package var directory: String
    package var socketPath: String
    package var engine = EngineOptions()
    package var limits = Limits()
    /// The disk limit of the larder; nil for the default.
    package var diskBytes: DiskLimit?
    /// The limit in bytes, with the default; nil for none.
    package var diskBytesMax: Int? {
        guard let diskBytes else { return DiskBudget.standardBytes(for: directory) }
        return diskBytes.byteCount
    }
    /// The published events: Redis' `notify-keyspace-events`.
    package var keyspaceEvents = ""
    /// Event loops, 1 to 64; connections are distributed over them.
    package var threads = 1
    /// Whether the server handles signals: SIGTERM and SIGINT stop it; SIGHUP makes it reload the configuration file, or
    /// stops it if there is none.
    package var handlesSignals = true
    /// Commands that no user may run.
    package var disabledCommands = CommandSet()
    /// The access rules.
    package var rules = AccessRules()
    /// The password for AUTH; nil for none.
    package var password: [UInt8]?
    /// The password file; empty for none.
    package var passwordPath = ""
    /// The configuration file that was read; nil for none.
    package var filePath: String?
    /// Called before a thread that may block runs a connection's commands. Tests use it to make that thread wait.
    package var beforeColdSlice: (@Sendable () -> Void)?
    /// Called with the name of a deferred command before its work, on the thread that runs it. Tests use it to make
    /// that thread wait.
    package var beforeWork: (@Sendable (String) -> Void)?

    /// The access to the socket that the server creates.
    package var socketAccess = SocketAccess()
    /// The listening socket created by the service manager; nil if the server creates it.
    package var passedSocket: PassedSocket?

    package init(directory: String, socketPath: String) {
        self.directory = directory
        self.socketPath = socketPath
    }

    /// The names of the program and its option in errors about the socket.
    static let socketProgram = SocketFile.Name(program: "larderd", option: "--socket")

    /// The default memory for entries: a 16th of the machine's, at least 16 MiB, at most 512 MiB.
    package static var defaultMemoryBytes: Int {
        let (pages, size) = (sysconf(Int32(_SC_PHYS_PAGES)), sysconf(Int32(_SC_PAGESIZE)))
        guard pages > 0, size > 0 else { return 16 << 20 }
        let (bytes, overflow) = Int(pages).multipliedReportingOverflow(by: Int(size))
        return min(max((overflow ? Int.max : bytes) / 16, 16 << 20), 512 << 20)
    }

    /// The smallest useful value, at which every few writes cause a checkpoint.
    static let checkpointBytesMin = 1 << 10
    private static let segmentBytesMin = 64 << 10

    /// Sets the bytes of journal after which a checkpoint is due, at least ``checkpointBytesMin``.
    mutating func setCheckpoint(_ asked: Int) {
        engine.checkpointBytes = asked
        // A checkpoint removes whole journal files, so there must be several per checkpoint.
        engine.journalSegmentBytes = min(engine.journalSegmentBytes, max(Self.segmentBytesMin, asked / 4))
    }
}
