import LarderPlatform
import LarderServices
import LarderVocabulary

/// larderweb's command line, parsed.
struct WebOptions {
    /// The text to print instead of serving; nil to serve.
    var output: String?
    var listen = ListenAddress.network(host: "127.0.0.1", port: 8377)
    var socketAccess = SocketAccess()
    var token: [UInt8]?
    var hosts: Set<String> = []
    var allowsChanges = false
    /// Whether the last day's figures are stored on the disk.
    var keepsHistory = true
    /// The directory of the larder for these figures; nil for the default.
    var historyDirectory: String?
    var limits = HTTPLimits()
    var socketPath: String?
    var password: String?
    /// The path of the password file; empty for none.
    var passwordPath = ""
    var trustedUsers: Set<UInt32> = []
    var logLevel = Log.Level.info
    var logFormat = LogFormat.automatic

    /// Parses the words after the program's name.
    init(_ words: [String]) throws(UsageError) {
        var rest = words.map { Array($0.utf8) }[...]
        while let option = try Self.table.next(&rest) {
            try option.row.apply(option.value, to: &self)
            // An option such as `--help` ends the parsing: later words are not checked.
            if output != nil { return }
        }
        if socketAccess.group != nil, case .network = listen {
            throw UsageError("--socket-group needs --listen unix:/path")
        }
        guard listen.isLocal || token != nil else {
            throw UsageError("--listen: other machines can reach this address: use --token-file, or 127.0.0.1")
        }
    }
}

typealias WebOption = OptionRow<WebOptions>

extension WebOptions {
    /// larderweb's options. To add an option, add a row.
    static let table: OptionTable<WebOptions> = OptionTable(
        "larderweb",
        own
            + WebOption.telling(
                help: { options, _ in options.output = WebProgram.help },
                version: { options, _ in options.output = "larderweb \(Version.text)\n" }))

    private static let own: [WebOption] = [
        WebOption(
            "--listen", "ADDRESS",
            [
                "the address for browsers and scrapers: an address with a port; or unix:/path, which only",
                "this user can use (creates missing directories); other machines need --token-file",
                "(default: 127.0.0.1:8377; port 0: any)",
            ]
        ) { $0.listen = try $1.parsed(ListenAddress.rule) { ListenAddress($0) } },
        WebOption(
            "--socket-group", "NAME",
            ["a group that may also use the socket of --listen unix:, such as that of a web server"]
        ) { $0.socketAccess.group = try $1.group() },
        WebOption(
            "--token-file", "PATH",
            [
                "a file with the token in its first line, 16 characters or more: scrapers send it as bearer",
                "token, browsers in a form; must not be readable by all users",
            ]
        ) { $0.token = try $1.token() },
        WebOption("--host", "NAME", ["another host name for browsers, for example behind a proxy; repeatable"]) {
            let host = try $1.parsed("a host name without a port") { text in
                let isName = !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }
                return isName ? text.lowercased() : nil
            }
            $0.hosts.insert(host)
        },
        WebOption(
            "--allow-changes", nil,
            ["allow removing entries, changing policies and indexes, and purging databases (default: read-only)"]
        ) { options, _ in options.allowsChanges = true },
        WebOption(
            "--history", "DIRECTORY",
            [
                "the larder for the last day's figures, at most 16 MiB; none: in memory only",
                "(default: $XDG_CACHE_HOME/larderweb/larder, else ~/.cache/larderweb/larder; without a home none)",
            ]
        ) {
            let path = try $1.path()
            $0.keepsHistory = path != "none"
            $0.historyDirectory = path == "none" ? nil : path
        },
        WebOption("--max-connections", "N", ["maximum open connections (default: 64)"]) {
            $0.limits.connections = UInt32(try $1.number(1...1024))
        },
        WebOption(
            "--request-timeout", "TIME",
            ["timeout for receiving a request, and for idle connections (default: 30s)"]
        ) { $0.limits.requestMilliseconds = try $1.time(.milliseconds, 100...3_600_000) },
        WebOption("--socket", "PATH", ["the daemon's socket (default: $LARDER_SOCKET, else the daemon's default)"]) {
            $0.socketPath = try $1.path()
        },
        WebOption("--password-file", "PATH", ["a file with the daemon's password in its first line"]) {
            guard let password = String(validating: try $1.password(), as: UTF8.self) else {
                throw $1.error("the password in the first line is not UTF-8")
            }
            ($0.password, $0.passwordPath) = (password, $1.text)
        },
        WebOption(
            "--trust-user", "NAME",
            ["also trust a daemon of this user (name or number), in addition to root, you and system users"]
        ) { $0.trustedUsers.insert(try $1.user()) },
        WebOption("--log-level", "LEVEL", ["debug, info, warning or error (default: info)"]) {
            $0.logLevel = try $1.oneOf("debug, info, warning, error") { Log.Level($0) }
        },
        WebOption(
            "--log-format", "FORMAT",
            ["text, json or systemd (default: systemd if standard error is its journal, else text)"]
        ) { $0.logFormat = try $1.oneOf("text, json, systemd") { LogFormat(rawValue: $0) } },
        WebOption("--completion", "SHELL", ["print the completion of these options for bash, zsh or fish, then exit"]) {
            $0.output = try $1.oneOf("bash, zsh, fish") { WebOptions.table.completion(for: $0) }
        },
        WebOption("--manual", nil, ["print the manual page (larderweb --manual | man -l -), then exit"]) { options, _ in
            options.output = WebProgram.manualPage
        },
    ]
}

extension OptionValue {
    /// The minimum length of a token in bytes, so that it cannot be guessed.
    private static let tokenBytesMin = 16

    /// Reads the token that clients must send from the first line of a file.
    fileprivate func token() throws(UsageError) -> [UInt8] {
        let line = try firstLine()
        var status = stat()
        guard stat(text, &status) == 0 else { throw error("cannot read it: \(SystemErrorText.of(errno))") }
        // Group read access is allowed, because systemd's credentials have it.
        guard status.st_mode & 0o027 == 0 else { throw error("other users can read or change it: chmod 640") }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw error("it belongs to another user (uid \(status.st_uid)), who can change it")
        }
        guard line.count >= Self.tokenBytesMin, line.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw error(
                "the first line must be the token: \(Self.tokenBytesMin) or more printable characters without spaces")
        }
        return line
    }
}
