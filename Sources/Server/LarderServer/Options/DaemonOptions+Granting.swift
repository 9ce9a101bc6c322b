import LarderEngine

/// Options that say who may do what.
extension DaemonOption {
    static let granting: [DaemonOption] = [
        DaemonOption(
            "--allow-uid", "USER=LEVEL[@DATABASE]",
            [
                "what a user may do, by name or number: LEVEL is read, write (and read) or administer (all),",
                "in one database or in all; separate several by commas or spaces, or repeat it.",
                "With any such rule, others may do nothing; root and the daemon's own user everything",
                "(default: no rules: everybody who can open the socket may do everything)",
            ],
            settings: [.own { $0.access.rules.users.map(\.shortText).joined(separator: ",") }], live: live
        ) { try $0.grant(\.users, try $1.rules(.user), by: "--allow-uid") }.repeatable(),
        DaemonOption(
            "--allow-gid", "GROUP=LEVEL[@DATABASE]",
            ["the same for the members of a group, its own or a supplementary one"],
            settings: [.own { $0.access.rules.groups.map(\.shortText).joined(separator: ",") }], live: live
        ) { try $0.grant(\.groups, try $1.rules(.group), by: "--allow-gid") }.repeatable(),
        DaemonOption(
            "--rights", "KIND:NAME=LEVEL[@DATABASE]",
            ["the same for both: user:alice=write@shop group:staff=read"],
            settings: [.own { $0.access.rules.others.map(\.text).joined(separator: ",") }], live: live
        ) { try $0.grant(\.others, try $1.rules(nil), by: "--rights") }.repeatable(),
    ]

    /// A client that could change them would have all rights.
    private static let live = Live(
        isForClients: false,
        problem: { server, line in
            // A file that somebody has moved away must not let everybody in.
            let isLost = line.filePath != nil && !line.hasReadFile && line.configuration.rules.isEmpty
            return isLost && !server.access.rules.isEmpty ? "the file is missing, and the rules in force stay" : nil
        },
        set: { server, line in
            let isOpen = line.configuration.rules.isEmpty && !server.access.rules.isEmpty
            server.change(line.configuration.rules)
            if isOpen {
                server.log.warning("the last rule is gone: \(line.configuration.rules.summary)")
            } else {
                server.log.info(line.configuration.rules.summary)
            }
        })
}

extension DaemonCommandLine {
    /// Takes all rules of an option.
    fileprivate mutating func grant(
        _ path: WritableKeyPath<AccessRules, [AccessRule]>, _ rules: [AccessRule], by option: String
    ) throws {
        configuration.rules[keyPath: path] = rules
        // A name may stand for another number later.
        contents[option] = Array(rules.map { "\($0.kind) \($0.number)" }.joined(separator: ",").utf8)
    }
}
