import LarderClient
import LarderPlatform
import LarderServices

extension Verb {
    static let origin = Verb(
        "origin", "[NAME [URL [WORD…] | none [DISCARD] | path]]", "show or change the origin of a database",
        details: """
            NAME is the database; without it, the one of --database. URL is redis://host:port[/db],
            redis+cluster://host:port,host:port or unix:///path[?db=n]; rediss:// and rediss+cluster:// use TLS.
            The daemon then reads missing entries from the origin, once for all clients, and caches them until the
            origin reports a change; writes go to the origin. WORDs after the URL:
            THROUGH (the default) also stores writes here, AROUND removes the entry here, BEHIND stores writes here and
            delivers them later: outbox is the number of queued keys. While keys are queued, changing the origin is
            refused unless DISCARD drops them. With STALE, reads return stale entries within their grace while the
            origin is down.
            BCAST [PREFIX P]… makes the origin broadcast changes of keys with these prefixes, or of all, instead of
            tracking reads; with LIFETIMES it reports nothing, and entries are fresh until they expire. With
            REPLICAS MS, reads that take longer also ask a replica, whose replies are stale. docs/Origins.md
            compares the modes.
            The origin's password is in a file that the daemon reads. The file with the daemon's own password is given
            before the verb: larderctl --password-file PATH origin …. none removes the origin; stored entries stay.
            path prints the upstream chain, starting with this larder, each as its name and the database.
            Prints the reply of ORIGIN, or OK after a change, and a warning if the origin does not reply within a
            second. With --json, prints an object.
            """,
        options: [
            OptionSpec("--user", "NAME", "with a URL: the user at the origin"),
            OptionSpec(
                "--password-file", "PATH",
                "with a URL: a file that the daemon reads, with the origin's password in its first line"),
            OptionSpec("--tls", nil, "with a URL: use TLS, like rediss"),
            OptionSpec("--ca", "PATH", "with TLS: a file with the trusted certificates, instead of the system's"),
        ],
        argumentCount: 0...160
    ) { arguments, context in
        let words = Array(arguments.words.dropFirst())
        if let name = arguments.words.first, name.contains(UInt8(ascii: ":")) {
            throw UsageError("put the name of the database before the URL: larderctl origin NAME \(printableKey(name))")
        }
        if words.first?.lowercasedText == "path" { return try showPath(arguments, words, context) }
        guard let url = words.first, url.lowercasedText != "none" else {
            return try showOrRemove(arguments, words, context)
        }
        var change = [Array(try originURL(url, arguments).utf8)] + words.dropFirst()
        // Insert the options before DISCARD, which must be the last word.
        let isDiscarding = change.count > 1 && change.last.map { $0.lowercasedText == "discard" } == true
        let last = isDiscarding ? change.removeLast() : nil
        if let option = arguments["--user"] { change += [Array("USER".utf8), Array(try option.checkedText().utf8)] }
        if let option = arguments["--password-file"] {
            change += [Array("PASSWORDFILE".utf8), Array(try wholePath(option).utf8)]
        }
        if let last { change.append(last) }
        let client = try context.options.connect()
        try client.select(String(decoding: arguments.words[0], as: UTF8.self))
        try client.setOrigin(change)
        context.show(["ok": true], text: "OK")
        if let reason = try reasonOfSilence(client) {
            Output.standardError("larderctl: the origin is set, but not available yet: \(reason)\n")
        }
        return .done
    }

    /// Returns the URL of an origin, with the options `--tls` and `--ca` added to it.
    private static func originURL(_ word: [UInt8], _ arguments: VerbArguments) throws -> String {
        guard var url = String(validating: word, as: UTF8.self) else {
            throw UsageError("the URL of an origin must be text")
        }
        if arguments["--tls"] != nil, !url.hasPrefix("rediss") {
            guard url.hasPrefix("redis") else { throw UsageError("--tls is only for redis:// and redis+cluster://") }
            url = "rediss" + url.dropFirst("redis".count)
        }
        guard let option = arguments["--ca"] else { return url }
        guard url.hasPrefix("rediss") else { throw UsageError("--ca needs --tls or a URL that starts with rediss") }
        return url + (url.contains("?") ? "&" : "?") + "ca=" + (try wholePath(option))
    }

    /// Returns the path as an absolute one, because the daemon may have another working directory.
    private static func wholePath(_ option: OptionValue) throws -> String {
        FileSystem.absolute(try option.checkedText())
    }

    /// Waits for at most a second until a new origin is available. Returns why it is not available; nil if it is.
    private static func reasonOfSilence(_ client: BlockingLarderClient) throws -> String? {
        let end = MonotonicClock.milliseconds() + 1000
        while true {
            let fields = Dictionary(try client.originInfo()) { first, _ in first }
            if fields["state"] == "up" { return nil }
            if let error = fields["error"], !error.isEmpty { return error }
            guard MonotonicClock.milliseconds() < end else { return "it has not replied yet" }
            _ = poll(nil, 0, 10)
        }
    }

    private static func showPath(
        _ arguments: VerbArguments, _ words: [[UInt8]], _ context: Context
    ) throws -> ExitCode {
        guard words.count == 1 else {
            throw UsageError("path takes no arguments: larderctl origin \(printableKey(arguments.words[0])) path")
        }
        let client = try connect(arguments, context)
        try client.select(String(decoding: arguments.words[0], as: UTF8.self))
        let path = try client.command(["ORIGIN", "PATH"]).elements?.compactMap(\.string) ?? []
        context.show(path.json) { output in
            for larder in path { output.line(larder) }
        }
        return .done
    }

    /// Connects to the daemon for a call without the URL of an origin.
    private static func connect(_ arguments: VerbArguments, _ context: Context) throws -> BlockingLarderClient {
        try arguments.refuse(["--user", "--tls", "--ca"], without: "the URL of an origin")
        var options = context.options
        // Without the URL of an origin, `--password-file` is the file with the daemon's password.
        if let option = arguments["--password-file"] { options.password = try Options.password(option) }
        return try options.connect()
    }

    private static func showOrRemove(
        _ arguments: VerbArguments, _ words: [[UInt8]], _ context: Context
    ) throws -> ExitCode {
        let client = try connect(arguments, context)
        if let name = arguments.words.first { try client.select(String(decoding: name, as: UTF8.self)) }
        guard words.isEmpty else {
            try client.setOrigin(words)
            context.show(["ok": true], text: "OK")
            return .done
        }
        let fields = try client.originInfo()
        context.show(.object(fields.map { (name: $0, value: Int64($1).map { .integer($0) } ?? .text($1)) })) { output in
            if fields.first?.1.isEmpty ?? true { return output.line("none") }
            for (name, value) in fields { output.line("\(name): \(value)") }
        }
        return .done
    }
}

extension [UInt8] {
    fileprivate var lowercasedText: String { String(decoding: self, as: UTF8.self).lowercased() }
}
