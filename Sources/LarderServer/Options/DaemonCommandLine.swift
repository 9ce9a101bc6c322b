import LarderEngine

/// larderd's command line, parsed.
package struct DaemonCommandLine: Sendable {
    package enum Action: Equatable, Sendable {
        case serve
        case purge(PurgeTarget)
        case help
        case version
    }

    package enum PurgeTarget: Equatable, Sendable {
        case all
        case database(String)
        case expired
    }

    package struct Failure: Error {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    package private(set) var action = Action.serve
    package var logLevel = Log.Level.info
    package var configuration: ServerConfiguration
    /// Whether the larder's directory was given.
    var hasDirectory = false

    /// Parses the words behind the program's name.
    package init(_ words: [String]) throws(Failure) {
        configuration = ServerConfiguration(directory: DefaultPaths.daemonLarder, socketPath: DefaultSocket.path)
        configuration.engine.memoryBytes = ServerConfiguration.defaultMemoryBytes
        // Memory holds whole entries: a larger block cache beside it brought nothing in measurements
        // (docs/Benchmarks.md).
        configuration.engine.blockCacheBytes = 8 << 20
        var words = words[...]
        while let word = words.popFirst() { try take(word, &words) }
        // In a directory where everybody may create files, somebody else may have created it first.
        if !hasDirectory, action != .help, action != .version, !DefaultPaths.isDaemonLarderSafe {
            throw Failure(
                "neither XDG_CACHE_HOME nor HOME is set, so there is no default directory: say with --dir where the larder "
                    + "is to be")
        }
    }

    private mutating func take(_ word: String, _ rest: inout ArraySlice<String>) throws(Failure) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let name = parts[0] == "-h" ? "--help" : parts[0]
        let attached = parts.count == 2 ? parts[1] : nil
        let named = DaemonOption.all.filter { $0.name == name }
        let option = named.first { ($0.form == .attached) == (attached != nil) } ?? named.first
        guard let option else {
            throw Failure(
                name.hasPrefix("-")
                    ? "unknown option \(name)" : "unexpected word '\(name)': larderd takes only options")
        }
        guard option.form != .flag else {
            guard attached == nil else { throw Failure("\(name) takes no value") }
            return try take(option, "")
        }
        guard let text = attached ?? rest.popFirst() else { throw Failure("\(name) needs a value") }
        try take(option, text)
    }

    private mutating func take(_ option: DaemonOption, _ text: String) throws(Failure) {
        do {
            try option.take(&self, OptionValue(option: option.name, text: text))
        } catch {
            throw error as? Failure ?? Failure("\(option.name): \(error)")
        }
    }

    mutating func set(_ new: Action) throws(Failure) {
        if action == .help || action == .version { return }
        guard action == .serve || action == new || new == .help || new == .version else {
            throw Failure("only one of --purge, --purge=NAME and --purge-expired can be given")
        }
        action = new
    }

    /// A number of bytes, up to 1 TiB.
    static func bytes(_ text: String) -> Int? {
        ByteCount.parse(text, letters: .binary).flatMap { $0 <= 1 << 40 ? Int($0) : nil }
    }
}
