import LarderCommandCatalog
import LarderPlatform
import LarderServices
import LarderVocabulary

/// An option of larderweb, with its parser and its help. To add an option, add a row to ``all``.
struct WebOption: Sendable {
    let name: String
    /// The name of the value in the help; nil for an option without one.
    let value: String?
    /// The lines of the help, of at most 90 characters each.
    let help: [String]
    /// Stores the value in the options. Throws ``UsageError`` only. This is not declared as a typed error, because then
    /// each closure would have to repeat the type.
    let take: @Sendable (inout WebOptions, String) throws -> Void

    static let all: [WebOption] = [
        WebOption(
            name: "--listen", value: "ADDRESS",
            help: [
                "the address for browsers and scrapers: an address with a port; or unix:/path, which only",
                "this user can use (creates missing directories); other machines need --token-file",
                "(default: 127.0.0.1:8377; port 0: any)",
            ]
        ) { options, text in
            guard let address = ListenAddress(text) else {
                throw UsageError("--listen \(text): must be \(ListenAddress.rule)")
            }
            options.listen = address
        },
        WebOption(
            name: "--socket-group", value: "NAME",
            help: ["a group that may also use the socket of --listen unix:, such as that of a web server"]
        ) { options, text in
            guard let group = gid_t(text) ?? Group.number(of: text) else {
                throw UsageError("--socket-group \(text): there is no such group")
            }
            options.socketAccess.group = group
        },
        WebOption(
            name: "--token-file", value: "PATH",
            help: [
                "a file with the token in its first line, 16 characters or more: scrapers send it as bearer",
                "token, browsers in a form; must not be readable by all users",
            ]
        ) { options, text in options.token = try SecretFile.token(text, "--token-file") },
        WebOption(
            name: "--host", value: "NAME",
            help: ["another host name for browsers, for example behind a proxy; repeatable"]
        ) { options, text in
            guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !text.contains("/") else {
                throw UsageError("--host \(text): must be a host name without a port")
            }
            options.hosts.insert(text.lowercased())
        },
        WebOption(
            name: "--allow-changes", value: nil,
            help: ["allow removing entries, changing policies, and purging databases (default: read-only)"]
        ) { options, _ in options.allowsChanges = true },
        WebOption(
            name: "--history", value: "DIRECTORY",
            help: [
                "the larder for the last day's figures, at most 16 MiB; none: in memory only",
                "(default: $XDG_CACHE_HOME/larderweb/larder, else ~/.cache/larderweb/larder; without a home none)",
            ]
        ) { options, text in
            options.keepsHistory = text != "none"
            options.historyDirectory = text == "none" ? nil : text
        },
        WebOption(
            name: "--max-connections", value: "N", help: ["maximum open connections (default: 64)"]
        ) { options, text in
            guard let number = UInt32(text), (1...1024).contains(number) else {
                throw UsageError("--max-connections \(text): must be a number from 1 to 1024")
            }
            options.limits.connections = number
        },
        WebOption(
            name: "--request-timeout", value: "TIME",
            help: ["timeout for receiving a request, and for idle connections (default: 30s)"]
        ) { options, text in
            guard let span = TimeSpan.parse(text, unit: .milliseconds), (100...3_600_000).contains(span) else {
                throw UsageError(
                    "--request-timeout \(text): must be \(TimeSpan.rule(.milliseconds)), from 100ms to 1h")
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
            help: ["also trust a daemon of this user (name or number), in addition to root, you and system users"]
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
                throw UsageError("--log-level \(text): must be debug, info, warning or error")
            }
            options.logLevel = level
        },
        WebOption(
            name: "--log-format", value: "FORMAT",
            help: ["text, json or systemd (default: systemd if standard error is its journal, else text)"]
        ) { options, text in
            guard let format = LogFormat(rawValue: text) else {
                throw UsageError("--log-format \(text): must be text, json or systemd")
            }
            options.logFormat = format
        },
        WebOption(
            name: "--completion", value: "SHELL",
            help: ["print the completion of these options for bash, zsh or fish, then exit"]
        ) { options, text in
            guard let completion = completions.text(for: text) else {
                throw UsageError("--completion \(text): must be bash, zsh or fish")
            }
            options.action = .completion(completion)
        },
        WebOption(
            name: "--manual", value: nil, help: ["print the manual page (larderweb --manual | man -l -), then exit"]
        ) { options, _ in
            options.action = .manual
        },
        WebOption(name: "--help", value: nil, help: ["print this help; also -h"]) { options, _ in
            options.action = .help
        },
        WebOption(name: "--version", value: nil, help: ["print the version; also -V"]) { options, _ in
            options.action = .version
        },
    ]

    /// The option's name, followed by that of its value.
    var usage: String { name + (value.map { " " + $0 } ?? "") }

    private static var completions: OptionCompletions {
        OptionCompletions(
            program: "larderweb", all.map { OptionCompletions.Option(name: $0.name, value: $0.value, help: $0.help) })
    }

    /// The options in the format of `--help`.
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
