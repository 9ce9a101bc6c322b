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

    /// Returns an option whose value is stored as `parse` returns it.
    /// - Parameter rule: what the value must be, for the error if `parse` returns nil.
    private static func parsed<Value>(
        _ name: String, _ value: String, help: [String], _ place: any WritableKeyPath<WebOptions, Value> & Sendable,
        rule: String, _ parse: @escaping @Sendable (String) -> Value?
    ) -> WebOption {
        WebOption(name: name, value: value, help: help) { options, text in
            guard let value = parse(text) else { throw UsageError("\(name) \(text): \(rule)") }
            options[keyPath: place] = value
        }
    }

    static let all: [WebOption] = [
        parsed(
            "--listen", "ADDRESS",
            help: [
                "the address for browsers and scrapers: an address with a port; or unix:/path, which only",
                "this user can use (creates missing directories); other machines need --token-file",
                "(default: 127.0.0.1:8377; port 0: any)",
            ], \.listen, rule: "must be \(ListenAddress.rule)"
        ) { ListenAddress($0) },
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
        parsed(
            "--max-connections", "N", help: ["maximum open connections (default: 64)"], \.limits.connections,
            rule: "must be a number from 1 to 1024"
        ) { UInt32($0).flatMap { (1...1024).contains($0) ? $0 : nil } },
        parsed(
            "--request-timeout", "TIME",
            help: ["timeout for receiving a request, and for idle connections (default: 30s)"],
            \.limits.requestMilliseconds, rule: "must be \(TimeSpan.rule(.milliseconds)), from 100ms to 1h"
        ) { TimeSpan.parse($0, unit: .milliseconds).flatMap { (100...3_600_000).contains($0) ? $0 : nil } },
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
        parsed(
            "--log-level", "LEVEL", help: ["debug, info, warning or error (default: info)"], \.logLevel,
            rule: "must be debug, info, warning or error"
        ) { Log.Level($0) },
        parsed(
            "--log-format", "FORMAT",
            help: ["text, json or systemd (default: systemd if standard error is its journal, else text)"],
            \.logFormat, rule: "must be text, json or systemd"
        ) { LogFormat(rawValue: $0) },
        parsed(
            "--completion", "SHELL", help: ["print the completion of these options for bash, zsh or fish, then exit"],
            \.action, rule: "must be bash, zsh or fish"
        ) { completions.text(for: $0).map { .completion($0) } },
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
