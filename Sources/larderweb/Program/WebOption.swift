import LarderCommandCatalog
import LarderPlatform
import LarderServices
import LarderVocabulary

/// One of larderweb's options: how it is parsed, and its help. Add a row to add one.
struct WebOption: Sendable {
    let name: String
    /// The name of the value in the help; nil for an option without one.
    let value: String?
    /// Lines of at most 90 characters.
    let help: [String]
    /// Throws ``UsageError`` only. Untyped, because closures would have to repeat the type.
    let take: @Sendable (inout WebOptions, String) throws -> Void

    static let all: [WebOption] = [
        WebOption(
            name: "--listen", value: "ADDRESS",
            help: [
                "where browsers and scrapers connect: an address with a port, or unix:/path, which only this user",
                "reaches, in directories that are made; other machines only with --token-file",
                "(default: 127.0.0.1:8377; port 0: any)",
            ]
        ) { options, text in
            guard let address = ListenAddress(text) else {
                throw UsageError("--listen \(text): it is \(ListenAddress.rule)")
            }
            options.listen = address
        },
        WebOption(
            name: "--socket-group", value: "NAME",
            help: ["a group that may use the socket of --listen unix:, too, such as that of a web server"]
        ) { options, text in
            guard let group = gid_t(text) ?? Group.number(of: text) else {
                throw UsageError("--socket-group \(text): there is no such group")
            }
            options.socketAccess.group = group
        },
        WebOption(
            name: "--token-file", value: "PATH",
            help: [
                "a file whose first line, of at least 16 characters, who asks must know: scrapers as bearer token,",
                "browsers in a form; not readable for everybody",
            ]
        ) { options, text in options.token = try SecretFile.token(text, "--token-file") },
        WebOption(
            name: "--host", value: "NAME",
            help: ["another name under which browsers reach it, as through a proxy; may be repeated"]
        ) { options, text in
            guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !text.contains("/") else {
                throw UsageError("--host \(text): it is a host's name, without a port")
            }
            options.hosts.insert(text.lowercased())
        },
        WebOption(
            name: "--allow-changes", value: nil,
            help: ["entries can be removed, their lives changed, and databases purged (default: read only)"]
        ) { options, _ in options.allowsChanges = true },
        WebOption(
            name: "--history", value: "DIRECTORY",
            help: [
                "the larder in which the last day's figures are kept, 16 MiB at most; none: in memory only",
                "(default: $XDG_CACHE_HOME/larderweb/larder, else ~/.cache/larderweb/larder; without a home none)",
            ]
        ) { options, text in
            options.keepsHistory = text != "none"
            options.historyDirectory = text == "none" ? nil : text
        },
        WebOption(
            name: "--max-connections", value: "N", help: ["browsers' and scrapers' connections at a time (default: 64)"]
        ) { options, text in
            guard let number = UInt32(text), (1...1024).contains(number) else {
                throw UsageError("--max-connections \(text): it is a number from 1 to 1024")
            }
            options.limits.connections = number
        },
        WebOption(
            name: "--request-timeout", value: "TIME",
            help: ["how long a request may take to arrive, and a connection be idle (default: 30s)"]
        ) { options, text in
            guard let span = TimeSpan.parse(text, unit: .milliseconds), (100...3_600_000).contains(span) else {
                throw UsageError(
                    "--request-timeout \(text): it is \(TimeSpan.rule(.milliseconds)), from 100ms to 1h")
            }
            options.limits.requestMilliseconds = span
        },
        WebOption(
            name: "--socket", value: "PATH",
            help: ["the daemon's socket (default: $LARDER_SOCKET, else the daemon's default)"]
        ) { options, text in options.socketPath = text },
        WebOption(
            name: "--password-file", value: "PATH", help: ["a file with the daemon's password in its first line"]
        ) { options, text in
            options.password = try SecretFile.password(text, "--password-file")
            options.passwordPath = text
        },
        WebOption(
            name: "--trust-user", value: "NAME",
            help: ["also trust this user's daemon (name or number), besides root's, yours and system ones"]
        ) { options, text in
            guard let user = UInt32(text) ?? User.number(of: text) else {
                throw UsageError("--trust-user \(text): there is no such user")
            }
            options.trustedUsers.insert(user)
        },
        WebOption(
            name: "--log-level", value: "LEVEL", help: ["debug, info, warning or error (default: info)"]
        ) { options, text in
            guard let level = Log.Level(text) else {
                throw UsageError("--log-level \(text): it is one of debug, info, warning, error")
            }
            options.logLevel = level
        },
        WebOption(
            name: "--log-format", value: "FORMAT",
            help: ["text, json or systemd (default: systemd where standard error is its journal, else text)"]
        ) { options, text in
            guard let format = LogFormat(rawValue: text) else {
                throw UsageError("--log-format \(text): it is one of text, json, systemd")
            }
            options.logFormat = format
        },
        WebOption(
            name: "--completion", value: "SHELL",
            help: ["print the completion of these options for bash, zsh or fish, then exit"]
        ) { options, text in
            guard let completion = completions.text(for: text) else {
                throw UsageError("--completion \(text): it is one of bash, zsh, fish")
            }
            options.action = .completion(completion)
        },
        WebOption(name: "--manual", value: nil, help: ["print the manual page, for man -l -, then exit"]) {
            options, _ in
            options.action = .manual
        },
        WebOption(name: "--help", value: nil, help: ["print this help; also -h"]) { options, _ in
            options.action = .help
        },
        WebOption(name: "--version", value: nil, help: ["print the version; also -V"]) { options, _ in
            options.action = .version
        },
    ]

    /// The option with the name of its value.
    var usage: String { name + (value.map { " " + $0 } ?? "") }

    private static var completions: OptionCompletions {
        OptionCompletions(
            program: "larderweb", all.map { OptionCompletions.Option(name: $0.name, value: $0.value, help: $0.help) })
    }

    /// The options in the form in which `--help` prints them.
    static var helpLines: [String] {
        let column = 22
        return all.flatMap { option in
            let usage = "  " + option.usage
            let indent = String(repeating: " ", count: column)
            guard usage.count < column else { return [usage] + option.help.map { indent + $0 } }
            let first = usage + String(repeating: " ", count: column - usage.count) + option.help[0]
            return [first] + option.help.dropFirst().map { indent + $0 }
        }
    }
}
