import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// ACL and its subcommands. They show the access rules in larderd's options. Commands cannot change these rules.
extension CommandTable {
    static let accessCommands: Handlers = [
        .aclWhoami: { call in
            call.session.replies.bulk(call.session.record.known.user)
            return .done
        },
        // Looking up a user's name may wait for a directory service: never do it on an event loop.
        .aclList: { call in
            .later { [server = call.server] reply in
                reply.texts(
                    subjects(server).map { line($0.kind, $0.name, $0.rights, hasPassword: server.password != nil) })
            }
        },
        .aclUsers: { call in
            .later { [server = call.server] reply in
                reply.texts(subjects(server).filter { $0.kind == .user }.map(\.name))
            }
        },
        .aclGetuser: getuser,
        .aclCat: cat,
        .aclLog: log,
        .aclDryrun: dryrun,
        .aclGenpass: genpass,
        .aclSetuser: { _ throws(CommandError) in throw unchangeable },
        .aclDeluser: { _ throws(CommandError) in throw unchangeable },
        .aclLoad: { _ throws(CommandError) in throw noFile },
        .aclSave: { _ throws(CommandError) in throw noFile },
    ]

    private static let unchangeable = CommandError(
        "ERR users are those of the system, and commands cannot change their rights: use --allow-uid, --allow-gid "
            + "and --rights, or larderd's configuration file, which SIGHUP reloads")
    private static let noFile = CommandError(
        "ERR This Redis instance is not configured to use an ACL file: rights are in larderd's configuration file, "
            + "which SIGHUP reloads")

    // MARK: Rights in the format of Redis

    private static func commands(_ level: AccessLevel?) -> String {
        switch level {
        case nil: "-@all +@connection"
        case .read: "-@all +@connection +@read"
        case .write: "-@all +@connection +@read +@write"
        case .administer: "+@all"
        }
    }

    private static func selectors(_ rights: Rights) -> [(database: String, level: AccessLevel)] {
        rights.databases.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private static func line(_ kind: AccessRule.Kind, _ name: String, _ rights: Rights, hasPassword: Bool) -> String {
        let start = "\(kind.rawValue) \(name) on \(hasPassword ? "" : "nopass ")~* &* \(commands(rights.everywhere))"
        return selectors(rights).reduce(start) { $0 + " (\($1.database): \(commands($1.level)))" }
    }

    /// Returns all users and groups that have rights. Root and the daemon's user come first. The others follow in the
    /// order of the rules.
    private static func subjects(_ server: ServerState) -> [(kind: AccessRule.Kind, name: String, rights: Rights)] {
        let rules = server.access.rules
        var all = Rights()
        all.allow(.administer, in: nil)
        guard !rules.isEmpty else { return [(.user, "default", all)] }
        var subjects: [(kind: AccessRule.Kind, name: String, rights: Rights)] = []
        for user in [0, geteuid()] {
            let name = server.access.userName(PeerCredentials(user: user, groups: []))
            if !subjects.contains(where: { $0.name == name }) { subjects.append((.user, name, all)) }
        }
        for rule in rules.all {
            let index = subjects.firstIndex { $0.kind == rule.kind && $0.name == rule.who } ?? subjects.count
            if index == subjects.count { subjects.append((rule.kind, rule.who, Rights())) }
            subjects[index].rights.allow(rule.level, in: rule.database)
        }
        return subjects
    }

    // MARK: Commands

    /// Returns the rights of a user, given by name or number; nil if the system does not know the user.
    private static func rights(of name: String, _ server: ServerState) -> Rights? {
        let rules = server.access.rules
        guard !rules.isEmpty else {
            guard name == "default" else { return nil }
            var all = Rights()
            all.allow(.administer, in: nil)
            return all
        }
        let rule = rules.all.first { $0.kind == .user && $0.who == name }
        guard let number = rule?.number ?? User.number(of: name) ?? uid_t(name) else { return nil }
        return rules.rights(of: PeerCredentials(user: number, groups: User.groups(of: User.name(of: number) ?? name)))
    }

    @Sendable private static func getuser(_ call: inout Call) throws(CommandError) -> Outcome {
        let (server, name) = (call.server, call.text(2))
        return .later { reply in
            guard let rights = rights(of: name, server) else { return reply.null() }
            reply.map(count: 6)
            let flags = server.password == nil ? ["on", "nopass"] : ["on"]
            reply.bulk("flags")
            reply.set(count: flags.count)
            for flag in flags { reply.bulk(flag) }
            reply.field("passwords", [])
            write(rights.everywhere, to: &reply)
            let selectors = selectors(rights)
            reply.bulk("selectors")
            reply.array(count: selectors.count)
            for selector in selectors {
                reply.map(count: 4)
                reply.field("database", selector.database)
                write(selector.level, to: &reply)
            }
        }
    }

    private static func write(_ level: AccessLevel?, to reply: inout ReplyBuffer) {
        reply.field("commands", commands(level))
        reply.field("keys", "~*")
        reply.field("channels", "&*")
    }

    @Sendable private static func cat(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 3 else { throw .syntax }
        let categories = CommandMetadata.categoryOrder
        guard call.count == 3 else {
            call.session.replies.texts(categories)
            return .done
        }
        guard categories.contains(call.text(2).lowercased()) else {
            throw CommandError("ERR Unknown category '", shown(call.bytes(2), 128), "'")
        }
        let category = "@" + call.text(2).lowercased()
        let rows = CommandMetadata.withSubcommands.filter { $0.runsByItself && $0.categories.contains(category) }
        call.session.replies.texts(rows.map(\.name))
        return .done
    }

    @Sendable private static func log(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 3 else { throw .syntax }
        if call.count == 3, call.isWord(2, "RESET") {
            call.server.access.forget()
            return call.ok()
        }
        let most = call.count == 3 ? try call.integer(2) : 10
        let denials = call.server.access.remembered.prefix(max(0, Int(clamping: most)))
        let session = call.session
        session.replies.array(count: denials.count)
        for denial in denials {
            let age = max(0, call.server.engine.now() - denial.at).zeroPadded(4)
            session.replies.map(count: 7)
            session.replies.field("count", denial.count)
            session.replies.field("reason", denial.reason.rawValue)
            session.replies.field("context", denial.context)
            session.replies.field("object", denial.object)
            session.replies.field("username", denial.user)
            session.replies.field("age-seconds", "\(age.dropLast(3)).\(age.suffix(3))")
            session.replies.field("client-info", denial.client)
        }
        return .done
    }

    @Sendable private static func dryrun(_ call: inout Call) throws(CommandError) -> Outcome {
        let words = (3..<call.count).map { call.array($0) }
        let (server, name, selected) = (call.server, call.text(2), call.database.name)
        guard let row = CommandMetadata.row(of: words) else {
            throw CommandError("ERR Command '", shown(call.bytes(3), 128), "' not found")
        }
        guard row.accepts(argumentCount: words.count) else { throw .arity(row.name) }
        return .later { (reply) throws(CommandError) in
            guard let rights = rights(of: name, server) else {
                throw CommandError("ERR User '", Array(name.utf8.prefix(128)), "' not found")
            }
            if server.disabledCommands.contains(row) {
                reply.bulk(CommandError.switchedOffText(row))
            } else if let refusal = refusal(rights, row, words, selected) {
                reply.bulk(refusal.text(row, user: name))
            } else {
                reply.simple("OK")
            }
        }
    }

    private static func refusal(
        _ rights: Rights, _ row: CommandMetadata, _ words: [[UInt8]], _ selected: String
    ) -> Rights.Refusal? {
        var places: [Range<Int>] = []
        for word in words {
            places.append((places.last?.upperBound ?? 0)..<(places.last?.upperBound ?? 0) + word.count)
        }
        return Array(words.joined()).withUnsafeBytes { bytes in
            rights.refusal(row, count: words.count, selected: selected) {
                UnsafeRawBufferPointer(rebasing: bytes[places[$0]])
            }
        }
    }

    @Sendable private static func genpass(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 3 else { throw .syntax }
        let bits = call.count == 3 ? parseInteger(call.bytes(2)) : 256
        guard let bits, (1...4096).contains(bits) else {
            throw CommandError(
                "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
            )
        }
        var generator = SystemRandomNumberGenerator()
        let digits = Array("0123456789abcdef".utf8)
        call.session.replies.bulk((0..<(bits + 3) / 4).map { _ in digits[Int.random(in: 0..<16, using: &generator)] })
        return .done
    }
}
