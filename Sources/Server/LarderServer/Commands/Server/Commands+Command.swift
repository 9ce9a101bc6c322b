import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// COMMAND and its subcommands.
extension CommandTable {
    static let commandCommands: Handlers = [
        .command: { call in
            describe(all, call.session)
            return .done
        },
        .commandCount: { call in call.reply(all.count) },
        .commandList: list,
        .commandInfo: { call in
            describe(named(call), call.session)
            return .done
        },
        .commandDocs: docs,
        .commandGetkeys: getkeys,
        .commandGetkeysandflags: getkeysandflags,
    ]

    @Sendable private static func list(_ call: inout Call) throws(CommandError) -> Outcome {
        var names = withSubcommands
        if call.count == 5, call.isWord(2, "FILTERBY") {
            if call.isWord(3, "ACLCAT") {
                let category = "@" + call.text(4).lowercased()
                names = names.filter { $0.metadata.categories.contains(category) }
            } else if call.isWord(3, "PATTERN") {
                let pattern = GlobPattern(Array(call.text(4).lowercased().utf8))
                names = names.filter { pattern.matches(Array($0.name.utf8)) }
            } else if call.isWord(3, "MODULE") {
                names = []
            } else {
                throw .syntax
            }
        } else if call.count > 2 {
            throw .syntax
        }
        call.session.replies.texts(names.map(\.name))
        return .done
    }

    @Sendable private static func docs(_ call: inout Call) throws(CommandError) -> Outcome {
        let specs = named(call).compactMap { $0 }
        call.session.replies.map(count: specs.count)
        for spec in specs { document(spec.metadata, call.session) }
        return .done
    }

    /// Returns the commands named by the third and later words of the call; nil for each unknown name. Without names,
    /// returns all commands.
    private static func named(_ call: Call) -> [CommandSpec?] {
        guard call.count > 2 else { return all }
        return (2..<call.count).map { findWithSubcommand(call.text($0)) }
    }

    private static func describe(_ specs: [CommandSpec?], _ session: Session) {
        session.replies.array(count: specs.count)
        for spec in specs {
            guard let spec else {
                session.replies.null()
                continue
            }
            describe(spec, session)
        }
    }

    /// Writes the ten elements with which Redis 7 describes a command.
    private static func describe(_ spec: CommandSpec, _ session: Session) {
        session.replies.array(count: 10)
        session.replies.bulk(spec.name)
        session.replies.integer(spec.arity)
        words(spec.metadata.flagNames, session)
        let positions = spec.metadata.shownKeys
        session.replies.integer(positions.first)
        session.replies.integer(positions.last)
        session.replies.integer(positions.step)
        words(spec.metadata.categories, session)
        session.replies.set(count: spec.metadata.tips.count)
        for tip in spec.metadata.tips { session.replies.bulk(tip.rawValue) }
        let keys = spec.metadata.keySpecifications
        session.replies.set(count: keys.count)
        for key in keys { key.write(to: &session.replyMemory.pointee) }
        session.replies.set(count: spec.subcommands.count)
        for subcommand in spec.subcommands { describe(subcommand, session) }
    }

    private static func words(_ words: [String], _ session: Session) {
        session.replies.set(count: words.count)
        for word in words { session.replies.simple(word) }
    }

    private static func document(_ spec: CommandMetadata, _ session: Session) {
        session.replies.bulk(spec.name)
        let flags = spec.documentationFlags
        let replacement = spec.replacement
        session.replies.map(
            count: 7 + (spec.subcommands.isEmpty ? 0 : 1) + (flags.isEmpty ? 0 : 1) + (replacement == nil ? 0 : 2))
        session.replies.field("summary", spec.summary)
        session.replies.field("since", spec.since)
        session.replies.field("group", spec.group.rawValue)
        session.replies.field("complexity", spec.complexity)
        session.replies.field("syntax", spec.syntax)
        session.replies.field("reply", spec.reply)
        if !flags.isEmpty {
            session.replies.bulk("doc_flags")
            words(flags, session)
        }
        if let replacement {
            session.replies.field("deprecated_since", replacement.since)
            session.replies.field("replaced_by", replacement.text)
        }
        arguments(spec, session)
        guard !spec.subcommands.isEmpty else { return }
        session.replies.bulk("subcommands")
        session.replies.map(count: spec.subcommands.count)
        for subcommand in spec.subcommands { document(subcommand, session) }
    }

    /// Writes the whole syntax as a single argument, because redis-cli then shows the syntax in its help.
    private static func arguments(_ spec: CommandMetadata, _ session: Session) {
        session.replies.bulk("arguments")
        guard !spec.syntax.isEmpty else { return session.replies.array(count: 0) }
        session.replies.array(count: 1)
        session.replies.map(count: 2)
        session.replies.field("name", spec.syntax)
        session.replies.field("type", "string")
    }

    // MARK: Keys of a call

    /// Parses the third and later words as a call of their own. Returns its command, and the positions of its keys.
    private static func keys(_ call: Call) throws(CommandError) -> (CommandSpec, [Int]) {
        let count = call.count - 2
        guard var spec = find(call.bytes(2)) else { throw CommandError("ERR Invalid command specified") }
        if !spec.subcommands.isEmpty, count > 1 {
            guard let found = spec.subcommand(named: call.text(3)) else {
                throw CommandError("ERR Invalid command specified")
            }
            spec = found
        }
        guard spec.metadata.keys.first > 0 || spec.metadata.keys.step > 0 else {
            throw CommandError("ERR The command has no key arguments")
        }
        guard spec.metadata.accepts(argumentCount: count) else {
            throw CommandError("ERR Invalid number of arguments specified for command")
        }
        let indices = spec.metadata.keyIndices(count: count) { call.bytes($0 + 2) }
        guard !indices.isEmpty || spec.metadata.flags.contains(.noMandatoryKeys) else {
            throw CommandError("ERR Invalid arguments specified for command")
        }
        return (spec, indices.map { $0 + 2 })
    }

    @Sendable private static func getkeys(_ call: inout Call) throws(CommandError) -> Outcome {
        let (_, indices) = try keys(call)
        call.session.replies.array(count: indices.count)
        for index in indices { call.session.replies.bulk(call.bytes(index)) }
        return .done
    }

    @Sendable private static func getkeysandflags(_ call: inout Call) throws(CommandError) -> Outcome {
        let (spec, indices) = try keys(call)
        call.session.replies.array(count: indices.count)
        for (position, index) in indices.enumerated() {
            call.session.replies.array(count: 2)
            call.session.replies.bulk(call.bytes(index))
            let flags = spec.metadata.keyFlags(position: position, count: call.count - 2) { call.bytes($0 + 2) }
            words(flags, call.session)
        }
        return .done
    }
}
