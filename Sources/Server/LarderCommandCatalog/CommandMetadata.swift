import LarderRESP
import Synchronization

/// The metadata of a command: a row of the catalog. Used to run the command, and to generate the replies to COMMAND,
/// the help and the documentation. Does not contain the command's handler.
///
/// A class, because the row is passed on for each command that runs, and copying its texts would take too long. Two
/// rows are equal if they are the same object.
package final class CommandMetadata: Sendable {
    /// The name in lower case, as Redis shows it; `command|subcommand` for a subcommand.
    package let name: String
    /// The number of words of a call, including the name. A negative number -n means at least n words.
    package let arity: Int
    package let flags: CommandFlags
    package let keys: KeyPositions
    package let group: CommandGroup
    /// The version of Redis that introduced the command; for Larder's own commands, the version of Larder.
    package let since: String
    package let complexity: String
    /// The arguments, as the help shows them after the name.
    package let syntax: String
    package let summary: String
    /// A description of the reply.
    package let reply: String
    /// The flags of Redis' key specifications: one list for all keys, or one for the first key and one for the others.
    package let access: [[String]]
    /// Whether the words of a call change how the command uses its key.
    package let keyUse: KeyUse
    /// An explanation of the key's flags; nil if none is needed.
    package let keyNotes: String?
    /// The positions of sharded channels; nil if there are none. COMMAND shows them like keys.
    package let channels: KeyPositions?
    /// The command's category for access lists; nil for the category of its group.
    package let category: String?
    /// The hints to clients that COMMAND shows.
    package let tips: [CommandTip]
    /// The command that should be used instead, and the version of Redis that has deprecated this one; nil if the
    /// command is not deprecated.
    package let replacement: (since: String, text: String)?
    /// The kind of the command's writes. It determines the names of the events about these writes.
    package let tag: WriteTag
    package let overwrites: Overwriting
    /// Which words of a call name a database.
    package let database: DatabaseArgument
    package let secrets: SecretWords
    /// The format of the reply, if it is a text for people or tools.
    package let textForm: TextForm
    package let effect: ConnectionEffect
    /// The fixed reply of a command for a type that Larder does not store; nil for all other commands.
    package let absent: AbsentReply?
    /// Whether the command is a subcommand HELP. The reply to HELP is generated from the other subcommands.
    package let isHelp: Bool
    /// The subcommands. The second word of a call selects one of them.
    package let subcommands: [CommandMetadata]
    /// The name that is compared with the words of requests; for a subcommand, the part of its name after the bar.
    /// ``ShortWord/other`` if the name is too long for a ``ShortWord``.
    package let word: ShortWord
    /// A number that identifies the row, counted from 0.
    package let number: Int

    private static let nextNumber = Atomic<Int>(0)
    /// An upper limit for ``number``.
    package static let numberMax = 512

    // Not inlined: about 250 copies of this initializer would take most of the time to compile this module.
    @inline(never) init(
        _ name: String, arity: Int, _ flags: CommandFlags, keys: KeyPositions = .none, group: CommandGroup,
        since: String, complexity: String = "O(1)", syntax: String = "", summary: String, reply: String,
        access: [String]? = nil, keyUse: KeyUse = .same, keyNotes: String? = nil, channels: KeyPositions? = nil,
        category: String? = nil, tips: [CommandTip] = [], replacement: (since: String, text: String)? = nil,
        tag: WriteTag = .other, overwrites: Overwriting = .never, database: DatabaseArgument = .none,
        secrets: SecretWords = .none, textForm: TextForm = .plain, effect: ConnectionEffect = .none,
        absent: AbsentReply? = nil, isHelp: Bool = false, subcommands: [CommandMetadata] = []
    ) {
        self.name = name
        word = ShortWord(String(name.split(separator: "|").last ?? ""))
        self.arity = arity
        self.flags = flags
        self.keys = keys
        self.group = group
        self.since = since
        self.complexity = complexity
        self.syntax = syntax
        self.summary = summary
        self.reply = reply
        let usual = flags.contains(.write) ? "RW access update" : "RO access"
        self.access = (access ?? [usual]).map { $0.split(separator: " ").map(String.init) }
        self.keyUse = keyUse
        self.keyNotes = keyNotes
        self.channels = channels
        self.category = category
        self.tips = tips
        self.replacement = replacement
        self.tag = tag
        self.overwrites = overwrites
        self.database = database
        self.secrets = secrets
        self.textForm = textForm
        if case .selected = database { self.effect = .selectsDatabase } else { self.effect = effect }
        self.absent = absent
        self.isHelp = isHelp
        self.subcommands = subcommands
        number = Self.nextNumber.wrappingAdd(1, ordering: .relaxed).oldValue
        precondition(number < Self.numberMax, "there are more commands than numberMax")
    }

    /// Creates the row of a subcommand HELP.
    static func help(_ command: String, group: CommandGroup, category: String? = nil, since: String = "5.0.0")
        -> CommandMetadata
    {
        CommandMetadata(
            "\(command)|help", arity: 2, [.loading, .stale], group: group, since: since,
            summary: "Describes the subcommands.", reply: "array of lines", category: category,
            isHelp: true)
    }
}

/// What related rows of the catalog have in common, such as those of the subcommands of a command. A row may differ.
struct CommandFamily {
    private let prefix: String
    private let flags: CommandFlags
    private let keys: KeyPositions
    private let group: CommandGroup
    private let (since, complexity, syntax, reply): (String, String, String, String)
    private let access: [String]?
    private let category: String?
    private let tips: [CommandTip]
    private let tag: WriteTag
    private let effect: ConnectionEffect

    /// - Parameters:
    ///   - prefix: the beginning of the names, which rows leave out.
    ///   - tag: the kind of the writes, of rows that write.
    init(
        _ prefix: String, flags: CommandFlags = [], keys: KeyPositions = .none, group: CommandGroup, since: String = "",
        complexity: String = "O(1)", syntax: String = "", reply: String = "", access: [String]? = nil,
        category: String? = nil, tips: [CommandTip] = [], tag: WriteTag = .other, effect: ConnectionEffect = .none
    ) {
        (self.prefix, self.flags, self.keys, self.group, self.since) = (prefix, flags, keys, group, since)
        (self.complexity, self.syntax, self.reply, self.access) = (complexity, syntax, reply, access)
        (self.category, self.tips, self.tag, self.effect) = (category, tips, tag, effect)
    }

    @inline(never) func row(
        _ name: String, _ arity: Int, flags: CommandFlags? = nil, since: String? = nil, complexity: String? = nil,
        syntax: String? = nil, _ summary: String, reply: String? = nil, keys: KeyPositions? = nil,
        access: [String]? = nil, keyNotes: String? = nil, channels: KeyPositions? = nil, tips: [CommandTip]? = nil,
        secrets: SecretWords = .none, textForm: TextForm = .plain, effect: ConnectionEffect? = nil
    ) -> CommandMetadata {
        let flags = flags ?? self.flags
        return CommandMetadata(
            prefix + name, arity: arity, flags, keys: keys ?? self.keys, group: group, since: since ?? self.since,
            complexity: complexity ?? self.complexity, syntax: syntax ?? self.syntax, summary: summary,
            reply: reply ?? self.reply, access: access ?? self.access, keyNotes: keyNotes, channels: channels,
            category: category, tips: tips ?? self.tips, tag: flags.contains(.write) ? tag : .other, secrets: secrets,
            textForm: textForm, effect: effect ?? self.effect)
    }
}

extension CommandMetadata: Hashable {
    package static func == (left: CommandMetadata, right: CommandMetadata) -> Bool { left === right }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension CommandMetadata {
    /// All commands, in the order of the help and the documentation. Subcommands are in the rows of their commands.
    package static let all: [CommandMetadata] =
        strings + bits + comparison + documents + keyspace + expiry + connections + scripting + server + absentTypes
        + larder

    /// All commands and subcommands. The subcommands of a command follow it.
    package static let withSubcommands: [CommandMetadata] = all.flatMap { [$0] + $0.subcommands }

    private static let byNumber: [Int: CommandMetadata] = Dictionary(
        uniqueKeysWithValues: withSubcommands.map { ($0.number, $0) })

    package static func numbered(_ number: Int) -> CommandMetadata? { byNumber[number] }

    private static let byName: [ShortWord: CommandMetadata] = Dictionary(
        uniqueKeysWithValues: all.filter { $0.word != .other }.map { ($0.word, $0) })
    private static let withLongNames: [CommandMetadata] = all.filter { $0.word == .other }

    /// Finds a command by its name, ignoring case; nil if there is none.
    package static func named(_ name: String) -> CommandMetadata? { named(Array(name.utf8)) }
    package static func named(_ name: [UInt8]) -> CommandMetadata? {
        let word = ShortWord(name)
        return word == .other ? name.withUnsafeBytes { named(long: $0) } : byName[word]
    }

    /// Finds a command whose name is too long for a ``ShortWord``, ignoring case.
    package static func named(long name: UnsafeRawBufferPointer) -> CommandMetadata? {
        withLongNames.first { row in
            row.name.utf8.count == name.count
                && zip(row.name.utf8, name).allSatisfy { $0 == ($1 >= 0x41 && $1 <= 0x5A ? $1 | 0x20 : $1) }
        }
    }

    /// Returns the row for a call: the row of the subcommand if the second word names one, otherwise the command's row.
    /// Returns nil for an unknown command.
    package static func row(of call: [[UInt8]]) -> CommandMetadata? {
        guard let name = call.first, let command = named(name) else { return nil }
        guard call.count > 1, !command.subcommands.isEmpty else { return command }
        let word = ShortWord(call[1])
        return command.subcommands.first { $0.word == word } ?? command
    }

    /// The name of a subcommand without the name of its command. For other commands, the whole name.
    package var ownName: Substring {
        name[(name.lastIndex(of: "|").map { name.index(after: $0) } ?? name.startIndex)...]
    }

    /// Whether the command can be called without a subcommand.
    package var runsByItself: Bool { subcommands.isEmpty || arity == -1 }

    /// The maximum number of entries that SWAPDB exchanges, in both databases together. `exchangedBytesMax` limits the
    /// size of their values, in bytes. SWAPDB writes all these entries in one step.
    package static let exchangedEntriesMax = 100_000
    package static let exchangedBytesMax = 64 << 20
}
