import LarderEngine

/// The options that grant rights to users and groups.
extension DaemonOption {
    static let granting: [DaemonOption] = [
        DaemonOption(
            "--allow-uid", "USER=LEVEL[@DATABASE]",
            [
                "rights of a user, by name or number: LEVEL is read, write (and read) or administer (all),",
                "in one database or in all. Separate rules by commas or spaces, or repeat the option.",
                "With any rule, other users have no rights; root and the daemon's user have all rights",
                "(default: no rules: any user who can connect has all rights)",
            ],
            settings: [.own { $0.access.rules.users.map(\.shortText).joined(separator: ",") }], live: live,
            isRepeatable: true
        ) { try $0.grant(\.users, try $1.rules(.user), by: "--allow-uid") },
        DaemonOption(
            "--allow-gid", "GROUP=LEVEL[@DATABASE]",
            ["rights of a group: users with it as primary or supplementary group"],
            settings: [.own { $0.access.rules.groups.map(\.shortText).joined(separator: ",") }], live: live,
            isRepeatable: true
        ) { try $0.grant(\.groups, try $1.rules(.group), by: "--allow-gid") },
        DaemonOption(
            "--rights", "KIND:NAME=LEVEL[@DATABASE]",
            ["rights of users and groups: user:alice=write@shop group:staff=read"],
            settings: [.own { $0.access.rules.others.map(\.text).joined(separator: ",") }], live: live,
            isRepeatable: true
        ) { try $0.grant(\.others, try $1.rules(nil), by: "--rights") },
    ]

    /// Clients cannot change the access rules: otherwise a client could give itself all rights.
    private static let live = Live(
        isForClients: false,
        problem: { server, line in
            // If the configuration file is missing, keep the current rules: without rules, all users would have all
            // rights.
            let isLost = line.filePath != nil && !line.hasReadFile && line.configuration.rules.isEmpty
            return isLost && !server.access.rules.isEmpty ? "the file is missing; the current rules stay" : nil
        },
        set: { server, line in
            let isOpen = line.configuration.rules.isEmpty && !server.access.rules.isEmpty
            server.change(line.configuration.rules)
            if isOpen {
                server.log.warning("the last rule was removed: \(line.configuration.rules.summary)")
            } else {
                server.log.info(line.configuration.rules.summary)
            }
        })
}

extension DaemonCommandLine {
    /// Stores all rules of one option.
    fileprivate mutating func grant(
        _ path: WritableKeyPath<AccessRules, [AccessRule]>, _ rules: [AccessRule], by option: String
    ) throws {
        configuration.rules[keyPath: path] = rules
        // Use the IDs of users and groups to detect a change of the option: a name may get another ID later.
        contents[option] = Array(rules.map { "\($0.kind) \($0.number)" }.joined(separator: ",").utf8)
    }
}
