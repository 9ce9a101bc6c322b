import LarderEngine
import LarderPlatform
import LarderQuerying

package struct ServerConfiguration: Sendable {
    package var directory: String
    package var socketPath: String
    package var engine = ServerConfiguration.standardEngine
    /// The engine's options with which a server starts.
    static var standardEngine: EngineOptions {
        var options = EngineOptions()
        options.indexMaker = DocumentIndexMaker()
        return options
    }

    package var limits = Limits()
    /// The disk limit of the larder, in bytes, as configured; 0 for no limit, nil to use the default.
    package var diskBytes: Int?
    /// The disk limit of the larder in bytes, after applying the default; nil for no limit.
    package var diskBytesMax: Int? {
        guard let diskBytes else { return DiskBudget.standardBytes(for: directory) }
        return diskBytes > 0 ? diskBytes : nil
    }
    /// The keyspace events to publish, in the syntax of Redis' `notify-keyspace-events`.
    package var keyspaceEvents = ""
    /// The number of event loops, 1 to 64. Connections are distributed over them.
    package var threads = 1
    /// Whether the server handles signals. SIGTERM and SIGINT stop the server. SIGHUP reloads the configuration file;
    /// if there is none, SIGHUP stops the server too.
    package var handlesSignals = true
    /// Commands that no user may run.
    package var disabledCommands = CommandSet()
    /// The rights that users and groups have.
    package var rules = AccessRules()
    /// The password for AUTH; nil for none.
    package var password: [UInt8]?
    /// The path of the file that contains the password; empty for none.
    package var passwordPath = ""
    /// The configuration file that was read; nil for none.
    package var filePath: String?
    /// Called before a thread that may block runs a connection's commands. Tests use it to make that thread wait.
    package var beforeColdSlice: (@Sendable () -> Void)?
    /// Called with the command's name before deferred work, on the thread of that work. Tests use it to make that
    /// thread wait.
    package var beforeWork: (@Sendable (String) -> Void)?

    /// The mode and the group of the socket that the server creates.
    package var socketAccess = SocketAccess()
    /// The listening socket that a service manager has passed to this process; nil if the server must create one.
    package var passedSocket: PassedSocket?

    package init(directory: String, socketPath: String) { (self.directory, self.socketPath) = (directory, socketPath) }

    /// The names of the program and its option, for error messages about the socket.
    static let socketProgram = SocketFile.Name(program: "larderd", option: "--socket PATH")

    /// The default memory for entries, in bytes: a 16th of the machine's memory, but at least 16 MiB and at most 512
    /// MiB.
    package static var defaultMemoryBytes: Int { min(max(MachineMemory.bytes / 16, 16 << 20), 512 << 20) }

    /// The description of valid limits for the disk space of a larder and of a database, used in error messages.
    static let diskLimitRule = limitRule(DiskThresholds.larderBytesMin)
    static let databaseLimitRule = limitRule(DiskThresholds.databaseBytesMin)

    private static func limitRule(_ least: Int) -> String {
        "\(ByteCount.rule), at least \(least >> 20)M; or 0 or none for no limit"
    }

    /// Parses a limit for disk space, as given to the option `--max-disk` and the command `LIMIT`.
    /// - Parameter least: the smallest valid limit, in bytes.
    /// - Returns: 0 for no limit; nil if the text is not a limit, or the limit is below `least`.
    static func diskLimit(_ text: String, least: Int = DiskThresholds.larderBytesMin) -> Int? {
        if text.lowercased() == "none" { return 0 }
        guard let bytes = ByteCount.parse(text, letters: .binary), bytes == 0 || bytes >= Int64(least) else {
            return nil
        }
        return Int(clamping: bytes)
    }

    /// The minimum for the journal size that starts a checkpoint, in bytes. With this value, every few writes cause a
    /// checkpoint.
    static let checkpointBytesMin = 1 << 10
    private static let segmentBytesMin = 64 << 10

    mutating func setMemory(_ bytes: Int) {
        engine.memoryBytes = bytes
        setWriteBuffer()
    }

    /// Sets LevelDB's write buffer to a 16th of the memory limit. With a larger buffer, a checkpoint writes fewer and
    /// larger tables, and LevelDB merges each byte fewer times. More than a checkpoint's size is not needed.
    private mutating func setWriteBuffer() {
        let bytes = min(max(engine.memoryBytes / 16, 4 << 20), 32 << 20)
        engine.writeBufferBytes = min(bytes, max(engine.checkpointBytes, 64 << 10))
    }

    /// Sets the journal size that starts a checkpoint, in bytes: at least ``checkpointBytesMin``.
    mutating func setCheckpoint(_ asked: Int) {
        engine.checkpointBytes = asked
        // A checkpoint removes only whole journal files. So a journal of this size must consist of several files.
        engine.journalSegmentBytes = min(engine.journalSegmentBytes, max(Self.segmentBytesMin, asked / 4))
        engine.checkpointRunBytes = min(engine.checkpointRunBytes, max(4 << 10, asked / 4))
        setWriteBuffer()
    }
}
