import LarderRESP
import Synchronization

/// One row with every fact about a command that dispatch, COMMAND, help and the documentation need, except for the
/// function that runs it, which the daemon has.
///
/// A class, because each command that runs passes its row around, and copying its texts would cost more than all the
/// rest of the lookup. Two rows are equal if they are the same object.
package final class CommandMetadata: Sendable {
    /// In lower case, as Redis reports it; `command|subcommand` for a subcommand.
    package let name: String
    /// The number of words of a call, the name included; if negative, the least number.
    package let arity: Int
    package let flags: CommandFlags
    package let keys: KeyPositions
    package let group: CommandGroup
    /// The version of Redis, or of Larder, that introduced it.
    package let since: String
    package let complexity: String
    /// The syntax behind the name.
    package let syntax: String
    package let summary: String
    /// The reply.
    package let reply: String
    /// What happens to the first key, or to all keys, and to the others: flags of Redis' key specifications.
    package let access: [[String]]
    /// How the words of a call change the use of its key.
    package let keyUse: KeyUse
    /// Why the flags of its keys are as they are, if that is not obvious.
    package let keyNotes: String?
    /// The positions of sharded channels, which COMMAND shows as keys although they are none.
    package let channels: KeyPositions?
    /// The access list category that replaces its group's.
    package let category: String?
    /// Redis' hints to clients.
    package let tips: [CommandTip]
    /// The command to use instead.
    package let replacement: Replacement?
    /// The name of its writes in events.
    package let tag: WriteTag
    package let overwrites: Overwriting
    /// The database that it names.
    package let database: DatabaseArgument
    package let secrets: SecretWords
    /// If the reply is text.
    package let textForm: TextForm
    package let effect: ConnectionEffect
    /// The reply of a command for a type of value that Larder does not store; nil for all others.
    package let absent: AbsentReply?
    /// Whether it is the row that answers `COMMAND HELP` from the rows beside it.
    package let isHelp: Bool
    /// The commands from which the second word of a call chooses.
    package let subcommands: [CommandMetadata]
    /// The name that requests are compared with: for a subcommand the part behind the bar. ``ShortWord/other`` for the
    /// few names that are longer.
    package let word: ShortWord
    /// An index, different for each row, from 0 on.
    package let number: Int

    private static let nextNumber = Atomic<Int>(0)
    /// An upper bound of the number of rows, subcommands included.
    package static let numberMax = 512

    /// The command that replaces a deprecated one, and since which version of Redis.
    package struct Replacement: Sendable {
        package let since: String
        package let text: String
    }

    // Not inlined: some 250 copies of it took most of the time to compile this module.
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

    /// With all subcommands, each behind its command.
    package static let withSubcommands: [CommandMetadata] = all.flatMap { [$0] + $0.subcommands }

    private static let byNumber: [Int: CommandMetadata] = Dictionary(
        uniqueKeysWithValues: withSubcommands.map { ($0.number, $0) })

    /// The row with an index.
    package static func numbered(_ number: Int) -> CommandMetadata? { byNumber[number] }

    private static let byName: [ShortWord: CommandMetadata] = Dictionary(
        uniqueKeysWithValues: all.filter { $0.word != .other }.map { ($0.word, $0) })
    private static let withLongNames: [CommandMetadata] = all.filter { $0.word == .other }

    /// The command with a name, in any case; nil if there is none.
    package static func named(_ name: String) -> CommandMetadata? { named(Array(name.utf8)) }
    package static func named(_ name: [UInt8]) -> CommandMetadata? {
        let word = ShortWord(name)
        return word == .other ? name.withUnsafeBytes { named(long: $0) } : byName[word]
    }

    /// The command with a name that is longer than a ``ShortWord``, in any case.
    package static func named(long name: UnsafeRawBufferPointer) -> CommandMetadata? {
        withLongNames.first { row in
            row.name.utf8.count == name.count
                && zip(row.name.utf8, name).allSatisfy { $0 == ($1 >= 0x41 && $1 <= 0x5A ? $1 | 0x20 : $1) }
        }
    }

    /// The row of a call: that of the subcommand in its second word, else of the command; nil if there is none.
    package static func row(of call: [[UInt8]]) -> CommandMetadata? {
        guard let name = call.first, let command = named(name) else { return nil }
        guard call.count > 1, !command.subcommands.isEmpty else { return command }
        let word = ShortWord(call[1])
        return command.subcommands.first { $0.word == word } ?? command
    }

    /// The name of a subcommand without its command's; else the whole name.
    package var ownName: Substring {
        name[(name.lastIndex(of: "|").map { name.index(after: $0) } ?? name.startIndex)...]
    }

    /// Whether the command runs without a subcommand.
    package var runsByItself: Bool { subcommands.isEmpty || arity == -1 }

    /// The most entries that both databases of SWAPDB may have together, and the most bytes of their values, because it
    /// writes them all at once.
    package static let exchangedEntriesMax = 100_000
    package static let exchangedBytesMax = 64 << 20
}
