import LarderRESP
import Synchronization

/// A command's row: all properties needed by dispatch, COMMAND, help and the documentation, except for the handler,
/// which is in the daemon.
///
/// A class, because each command that runs passes its row around, and copying its texts would cost more than the rest
/// of the lookup. Two rows are equal if they are the same object.
package final class CommandMetadata: Sendable {
    /// In lower case, as Redis reports it; `command|subcommand` for a subcommand.
    package let name: String
    /// The number of words of a call, including the name; if negative, the minimum.
    package let arity: Int
    package let flags: CommandFlags
    package let keys: KeyPositions
    package let group: CommandGroup
    /// The version of Redis, or of Larder, that introduced it.
    package let since: String
    package let complexity: String
    /// The syntax after the name.
    package let syntax: String
    package let summary: String
    /// The reply.
    package let reply: String
    /// The flags of Redis' key specifications: how the first key (or all keys) and the other keys are used.
    package let access: [[String]]
    /// How the words of a call affect the use of its key.
    package let keyUse: KeyUse
    /// An explanation of the key flags, if they are not obvious.
    package let keyNotes: String?
    /// The positions of sharded channels, which COMMAND shows as keys although they are not.
    package let channels: KeyPositions?
    /// The access list category of the command; nil for the category of its group.
    package let category: String?
    /// Redis' hints to clients.
    package let tips: [CommandTip]
    /// The command to use instead.
    package let replacement: Replacement?
    /// The name of its writes in events.
    package let tag: WriteTag
    package let overwrites: Overwriting
    /// The database given by its words.
    package let database: DatabaseArgument
    package let secrets: SecretWords
    /// The format of a reply that is text.
    package let textForm: TextForm
    package let effect: ConnectionEffect
    /// The reply of a command for a type of value that Larder does not store; nil for other commands.
    package let absent: AbsentReply?
    /// Whether it is the row for `COMMAND HELP`, whose reply is generated from the other subcommands.
    package let isHelp: Bool
    /// The subcommands, selected by the second word of a call.
    package let subcommands: [CommandMetadata]
    /// The name for comparison with requests; for a subcommand, the part after the bar. ``ShortWord/other`` for the few
    /// names that are too long.
    package let word: ShortWord
    /// A unique index, starting with 0.
    package let number: Int

    private static let nextNumber = Atomic<Int>(0)
    /// An upper bound of the number of rows, including subcommands.
    package static let numberMax = 512

    /// The replacement of a deprecated command, and the version of Redis that deprecated it.
    package struct Replacement: Sendable {
        package let since: String
        package let text: String
    }

    // Not inlined, because some 250 copies of this initializer took most of the time to compile this module.
    @inline(never) init(
        _ name: String, arity: Int, _ flags: CommandFlags, keys: KeyPositions = .none, group: CommandGroup,
        since: String, complexity: String = "O(1)", syntax: String = "", summary: String, reply: String,
        access: [String]? = nil, keyUse: KeyUse = .same, keyNotes: String? = nil, channels: KeyPositions? = nil,
        category: String? = nil, tips: [CommandTip] = [], replacement: Replacement? = nil, tag: WriteTag = .other,
        overwrites: Overwriting = .never, database: DatabaseArgument = .none, secrets: SecretWords = .none,
        textForm: TextForm = .plain, effect: ConnectionEffect = .none, absent: AbsentReply? = nil, isHelp: Bool = false,
        subcommands: [CommandMetadata] = []
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
        precondition(number < Self.numberMax, "there are more commands than are counted")
    }

    /// The row of `COMMAND HELP`.
    static func help(_ command: String, group: CommandGroup, category: String? = nil, since: String = "5.0.0")
        -> CommandMetadata
    {
        CommandMetadata(
            "\(command)|help", arity: 2, [.loading, .stale], group: group, since: since,
            summary: "Describes the subcommands.", reply: "array of lines", category: category,
            isHelp: true)
    }
}

extension CommandMetadata: Hashable {
    package static func == (left: CommandMetadata, right: CommandMetadata) -> Bool { left === right }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension CommandMetadata {
    /// All commands, in the order of help and documentation; subcommands are in the row of their command.
    package static let all: [CommandMetadata] =
        strings + bits + comparison + keyspace + expiry + connections + scripting + server + absentTypes
        + larder

    /// Including all subcommands, each after its command.
    package static let withSubcommands: [CommandMetadata] = all.flatMap { [$0] + $0.subcommands }

    private static let byNumber: [Int: CommandMetadata] = Dictionary(
        uniqueKeysWithValues: withSubcommands.map { ($0.number, $0) })

    /// Returns the row with an index.
    package static func numbered(_ number: Int) -> CommandMetadata? { byNumber[number] }

    private static let byName: [ShortWord: CommandMetadata] = Dictionary(
        uniqueKeysWithValues: all.filter { $0.word != .other }.map { ($0.word, $0) })
    private static let withLongNames: [CommandMetadata] = all.filter { $0.word == .other }

    /// Finds a command by name, ignoring case; nil if there is none.
    package static func named(_ name: String) -> CommandMetadata? { named(Array(name.utf8)) }
    package static func named(_ name: [UInt8]) -> CommandMetadata? {
        let word = ShortWord(name)
        return word == .other ? name.withUnsafeBytes { named(long: $0) } : byName[word]
    }

    /// Finds a command with a name longer than a ``ShortWord``, ignoring case.
    package static func named(long name: UnsafeRawBufferPointer) -> CommandMetadata? {
        withLongNames.first { row in
            row.name.utf8.count == name.count
                && zip(row.name.utf8, name).allSatisfy { $0 == ($1 >= 0x41 && $1 <= 0x5A ? $1 | 0x20 : $1) }
        }
    }

    /// Returns the row of a call: the subcommand in its second word, or else the command; nil if there is none.
    package static func row(of call: [[UInt8]]) -> CommandMetadata? {
        guard let name = call.first, let command = named(name) else { return nil }
        guard call.count > 1, !command.subcommands.isEmpty else { return command }
        let word = ShortWord(call[1])
        return command.subcommands.first { $0.word == word } ?? command
    }

    /// The name of a subcommand without its command's name; otherwise the whole name.
    package var ownName: Substring {
        name[(name.lastIndex(of: "|").map { name.index(after: $0) } ?? name.startIndex)...]
    }

    /// Whether the command runs without a subcommand.
    package var runsByItself: Bool { subcommands.isEmpty || arity == -1 }

    /// The most entries and bytes of values that SWAPDB exchanges, in both databases together: it writes all of them at
    /// once.
    package static let exchangedEntriesMax = 100_000
    package static let exchangedBytesMax = 64 << 20
}
