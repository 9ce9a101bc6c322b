import LarderEngine
import LarderServer

/// What stands on larderd's command line.
struct Options {
    enum Action: Equatable {
        case serve
        case purge(PurgeTarget)
        case help
        case version
    }

    enum PurgeTarget: Equatable {
        case all
        case database(String)
        case expired
    }

    struct Failure: Error { let description: String }

    private(set) var action = Action.serve
    private(set) var logLevel = Log.Level.info
    private(set) var configuration: Server.Configuration
    private var hasDirectory = false
    private var arguments: ArraySlice<String>

    /// The options that take a value, with what the value is; `--help` shows the same.
    init(_ words: [String]) throws(Failure) {
        configuration = Server.Configuration(
            directory: DefaultPaths.daemonLarder, socketPath: DefaultSocket.path)
        configuration.engine.memoryBytes = Server.defaultMemoryBytes
        // Hot entries are kept whole: more blocks beside them were measured to give nothing (docs/Benchmarks.md).
        configuration.engine.blockCacheBytes = 8 << 20
        arguments = words[...]
        while let word = arguments.popFirst() { try take(word) }
        // In a place that everybody may make, somebody else may have made it first.
        if !hasDirectory, action != .help, action != .version, !DefaultPaths.isDaemonLarderSafe {
            throw Failure(
                description:
                    "neither XDG_CACHE_HOME nor HOME is set, so that there is no default: say with --dir where "
                    + "the larder is to be")
        }
    }

    private mutating func take(_ word: String) throws(Failure) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let name = parts[0]
        let inline = parts.count == 2 ? parts[1] : nil
        switch name {
        case "--help", "-h": try flag(name, inline, .help)
        case "--version": try flag(name, inline, .version)
        case "--enable-debug":
            guard inline == nil else { throw Failure(description: "\(name) takes no value") }
            configuration.limits.allowsDebug = true
        case "--purge-expired": try flag(name, inline, .purge(.expired))
        case "--purge":
            guard let inline else { return try set(.purge(.all)) }
            guard DatabaseName.isValid(inline) else {
                throw Failure(description: "--purge=\(inline): not a database name: \(DatabaseName.rule)")
            }
            try set(.purge(.database(inline)))
        default: try takeValue(name, inline)
        }
    }

    private mutating func flag(_ name: String, _ value: String?, _ action: Action) throws(Failure) {
        guard value == nil else { throw Failure(description: "\(name) takes no value") }
        try set(action)
    }

    private mutating func set(_ new: Action) throws(Failure) {
        if action == .help || action == .version { return }
        guard action == .serve || action == new || new == .help || new == .version else {
            throw Failure(description: "only one of --purge, --purge=NAME and --purge-expired can be given")
        }
        action = new
    }

    private mutating func takeValue(_ name: String, _ inline: String?) throws(Failure) {
        let known = [
            "--dir", "--socket", "--policy", "--durability", "--threads", "--log-level", "--max-clients",
            "--max-tracked-keys", "--max-watched-deadlines", "--notify-keyspace-events",
            "--max-databases", "--max-reply", "--max-transaction", "--max-watched-keys", "--max-subscriptions",
            "--memory", "--checkpoint",
            "--max-subscriber-output", "--password-file", "--reply-timeout",
        ]
        guard known.contains(name) else {
            throw Failure(
                description: name.hasPrefix("-")
                    ? "unknown option \(name)" : "unexpected word '\(name)': larderd takes only options")
        }
        guard let value = inline ?? arguments.popFirst() else {
            throw Failure(description: "\(name) needs a value")
        }
        switch name {
        case "--dir":
            configuration.directory = try path(name, value)
            hasDirectory = true
        case "--socket": configuration.socketPath = try path(name, value)
        case "--policy":
            guard let policy = UpdatePolicy(value) else {
                throw Failure(description: "--policy \(value): it is one of \(UpdatePolicy.syntax)")
            }
            configuration.engine.defaultPolicy = policy
        case "--durability":
            guard let durability = Durability(rawValue: value) else {
                let all = Durability.allCases.map(\.rawValue).joined(separator: ", ")
                throw Failure(description: "--durability \(value): it is one of \(all)")
            }
            configuration.engine.durability = durability
        case "--log-level":
            guard let level = Log.Level(value) else {
                throw Failure(description: "--log-level \(value): it is one of debug, info, warning, error")
            }
            logLevel = level
        case "--memory": configuration.engine.memoryBytes = try byteCount(name, value)
        case "--checkpoint":
            let bytes = max(1024, try byteCount(name, value))
            configuration.engine.checkpointBytes = bytes
            // Whole files of the journal go when a checkpoint is done: a few for each.
            configuration.engine.journalSegmentBytes = min(
                configuration.engine.journalSegmentBytes, max(64 << 10, bytes / 4))
        case "--max-reply": configuration.limits.replyBytesMax = try byteCount(name, value)
        case "--max-tracked-keys": configuration.limits.trackedKeysMax = try number(name, value, 1...1_000_000_000)
        case "--max-watched-deadlines":
            configuration.limits.watchedDeadlinesMax = try number(name, value, 0...1_000_000_000)
        case "--notify-keyspace-events":
            guard Notifier.isValid(value) else {
                throw Failure(description: "\(name) \(value): \(Notifier.eventsError)")
            }
            configuration.keyspaceEvents = value
        case "--max-transaction": configuration.limits.transactionBytesMax = try byteCount(name, value)
        case "--max-subscriptions": configuration.limits.subscriptionBytesMax = try byteCount(name, value)
        case "--max-watched-keys": configuration.limits.watchedKeysMax = try number(name, value, 0...1_000_000)
        case "--max-subscriber-output": configuration.limits.subscriberBytesMax = try byteCount(name, value)
        case "--reply-timeout":
            configuration.limits.outputStallMilliseconds = Int64(try number(name, value, 1...86_400)) * 1000
        case "--password-file": configuration.password = try password(value)
        case "--threads": configuration.threads = try number(name, value, 1...64)
        case "--max-clients": configuration.limits.clientsMax = try number(name, value, 1...1_000_000)
        default: configuration.engine.databasesMax = try number(name, value, 1...10_000)
        }
    }

    /// The first line of a file.
    private func password(_ path: String) throws(Failure) -> [UInt8] {
        var bytes: [UInt8]?
        do throws(FileError) { bytes = try FileSystem.read(path) } catch {
            throw Failure(description: "--password-file: \(error)")
        }
        let line = Array((bytes ?? []).prefix { $0 != 0x0A && $0 != 0x0D })
        guard !line.isEmpty else {
            throw Failure(description: "--password-file \(path): its first line is to be the password")
        }
        return line
    }

    private func byteCount(_ name: String, _ value: String) throws(Failure) -> Int {
        guard let bytes = Self.bytes(value) else {
            throw Failure(
                description: "\(name) \(value): it is \(ByteCount.rule), up to 1T")
        }
        return bytes
    }

    /// A number of bytes, up to 1 TiB.
    static func bytes(_ text: String) -> Int? {
        ByteCount.parse(text, letters: .binary).flatMap { $0 <= 1 << 40 ? Int($0) : nil }
    }

    private func path(_ name: String, _ value: String) throws(Failure) -> String {
        guard !value.isEmpty else { throw Failure(description: "\(name) needs a path that is not empty") }
        return value
    }

    private func number(_ name: String, _ value: String, _ range: ClosedRange<Int>) throws(Failure) -> Int {
        guard let number = Int(value), range.contains(number) else {
            throw Failure(
                description: "\(name) \(value): it is a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
