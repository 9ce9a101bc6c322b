import LarderEngine
import RESP
import Synchronization

/// What a command is, in one row: everything that dispatch, COMMAND, help and the documentation need.
///
/// A class, because each command that runs passes its row around, and copying eight texts would cost more than the rest
/// of finding it.
package final class CommandSpec: Sendable {
    /// Lower case, as Redis reports it.
    package let name: String
    /// The name, for finding it in a request.
    let word: ShortWord
    /// How many words a call has, the name included; negative: at least so many.
    package let arity: Int
    package let flags: CommandFlags
    package let keys: KeyPositions
    /// Redis' group of the command, or `larder` for ours.
    package let group: String
    /// The version of Redis that brought it, or of Larder.
    package let since: String
    package let complexity: String
    /// What stands behind the name in a call.
    package let syntax: String
    package let summary: String
    /// What comes back.
    package let reply: String
    let run: Handler
    /// What its writes are called in events.
    let tag: WriteTag
    /// The commands that the second word of a call chooses from; this row itself is then never run. Their names are
    /// `command|subcommand`.
    package let subcommands: [CommandSpec]
    /// Different for each row, from 0 on: for counting.
    let number: Int

    private static let nextNumber = Atomic<Int>(0)
    /// More rows than there are, subcommands included.
    static let numberMax = 384

    /// Runs on the connection's event loop and must not block; what may block is deferred.
    typealias Handler = @Sendable (inout Call) throws(CommandError) -> Outcome

    init(
        _ name: String, arity: Int, _ flags: CommandFlags, keys: KeyPositions = .none, group: String, since: String,
        complexity: String, syntax: String = "", summary: String, reply: String, subcommands: [CommandSpec] = [],
        run: @escaping Handler = { _ throws(CommandError) in throw .syntax }
    ) {
        self.name = name
        tag = WriteTag(command: name)
        self.subcommands = subcommands
        // What is found by its second word has the part behind the bar.
        let own = name.split(separator: "|").last.map(String.init) ?? name
        word = ShortWord(own)
        precondition(own.utf8.count <= ShortWord.lengthMax, "a command's name is too long for the table")
        number = Self.nextNumber.wrappingAdd(1, ordering: .relaxed).oldValue
        precondition(number < Self.numberMax, "there are more commands than are counted")
        self.arity = arity
        self.flags = flags
        self.keys = keys
        self.group = group
        self.since = since
        self.complexity = complexity
        self.syntax = syntax
        self.summary = summary
        self.reply = reply
        self.run = run
    }

    func accepts(argumentCount: Int) -> Bool { arity >= 0 ? argumentCount == arity : argumentCount >= -arity }
}

package struct CommandFlags: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// Changes entries or databases: the database is opened or reopened first where that is needed.
    package static let write = CommandFlags(rawValue: 1)
    /// Reads entries: the database is opened first where that is needed.
    package static let readonly = CommandFlags(rawValue: 2)
    package static let fast = CommandFlags(rawValue: 4)
    package static let admin = CommandFlags(rawValue: 8)
    package static let loading = CommandFlags(rawValue: 16)
    package static let stale = CommandFlags(rawValue: 32)

    /// Works on whole databases and on a thread that may block, so that nothing is opened or created before it runs.
    package static let wholeDatabase = CommandFlags(rawValue: 64)
    /// Stores entries where there were none: a database without files is created first.
    package static let creates = CommandFlags(rawValue: 128)
    /// Reads no entries that it shows, but needs the database open as what does.
    package static let opens = CommandFlags(rawValue: 256)
    /// Runs between MULTI and EXEC instead of being queued.
    package static let inMulti = CommandFlags(rawValue: 512)
    /// Not allowed between MULTI and EXEC.
    package static let noMulti = CommandFlags(rawValue: 1024)
    package static let noScript = CommandFlags(rawValue: 2048)
    package static let allowBusy = CommandFlags(rawValue: 4096)
    package static let skipSlowlog = CommandFlags(rawValue: 8192)
    package static let noAuth = CommandFlags(rawValue: 1 << 14)
    package static let noAsyncLoading = CommandFlags(rawValue: 1 << 15)
    /// Sends messages to connections or changes who gets them.
    package static let pubsub = CommandFlags(rawValue: 1 << 16)
    /// Runs on the connection's event loop, wherever the commands before it ran.
    package static let onLoop = CommandFlags(rawValue: 1 << 17)
    /// Deferred to a thread of its own: takes little time whatever there is, and must not wait behind what takes long.
    package static let status = CommandFlags(rawValue: 1 << 18)
    /// Deferred: takes a bounded time.
    package static let brief = CommandFlags(rawValue: 1 << 19)

    /// Redis' names, in the order in which Redis tells them.
    package var names: [String] {
        let all: [(CommandFlags, String)] = [
            (.write, "write"), (.readonly, "readonly"), (.admin, "admin"), (.pubsub, "pubsub"),
            (.noScript, "noscript"),
            (.loading, "loading"), (.stale, "stale"), (.skipSlowlog, "skip_slowlog"), (.fast, "fast"),
            (.noAuth, "no_auth"),
            (.noAsyncLoading, "no_async_loading"),
            (.noMulti, "no_multi"), (.allowBusy, "allow_busy"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}

/// Which arguments are keys: positions count from the name, 0; `last` may count from the end, -1 being the last word.
package struct KeyPositions: Sendable {
    package let first: Int
    package let last: Int
    package let step: Int
    /// The argument that says how many keys there are; 0 where none does.
    package var countAt = 0

    package static let none = KeyPositions(first: 0, last: 0, step: 0)
    package static let one = KeyPositions(first: 1, last: 1, step: 1)
    package static let second = KeyPositions(first: 2, last: 2, step: 1)
    package static let two = KeyPositions(first: 1, last: 2, step: 1)
    package static let all = KeyPositions(first: 1, last: -1, step: 1)
    package static let pairs = KeyPositions(first: 1, last: -1, step: 2)
    /// A number, then so many keys with something behind each.
    package static let countedPairs = KeyPositions(first: 2, last: 0, step: 2, countAt: 1)
}

extension CommandSpec {
    /// The subcommand of a call.
    /// - Parameters:
    ///   - word: the second word.
    ///   - count: how many words the call has.
    func subcommand(_ word: UnsafeRawBufferPointer, count: Int) throws(CommandError) -> CommandSpec {
        let name = ShortWord(word)
        guard let found = subcommands.first(where: { $0.word == name }) else {
            throw CommandError(
                "ERR unknown subcommand '", shown(word, 128), "'. Try \(self.name.uppercased()) HELP.")
        }
        guard found.accepts(argumentCount: count) else { throw .arity(found.name) }
        return found
    }

    /// A row that answers `COMMAND HELP` from the rows beside it.
    static func help(_ command: String, since: String = "5.0.0") -> CommandSpec {
        CommandSpec(
            "\(command)|help", arity: 2, [.loading, .stale],
            group: CommandTable.helpGroups[command] ?? "server", since: since, complexity: "O(1)",
            summary: "Tells about the subcommands.", reply: "array of lines"
        ) { call throws(CommandError) in
            let rows = CommandTable.find(command)?.subcommands ?? []
            let replies = call.session.replyMemory
            replies.pointee.array(count: 1 + 2 * rows.count)
            replies.pointee.simple("\(command.uppercased()) <subcommand> [<argument> ...]. Subcommands are:")
            for row in rows {
                let name = row.name.split(separator: "|").last?.uppercased() ?? ""
                replies.pointee.simple(row.syntax.isEmpty ? name : "\(name) \(row.syntax)")
                replies.pointee.simple("    \(row.summary)")
            }
            return .done
        }
    }

    /// Which words of a call are keys.
    /// - Parameter word: a word's bytes.
    func keyIndices(count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> [Int] {
        guard keys.first > 0, keys.step > 0 else { return [] }
        if keys.countAt > 0 {
            guard keys.countAt < count, let number = parseInteger(word(keys.countAt)), number > 0 else { return [] }
            let room = (count - keys.first + keys.step - 1) / keys.step
            return (0..<max(0, min(room, Int(clamping: number)))).map { keys.first + $0 * keys.step }
        }
        let last = min(count - 1, keys.last < 0 ? count + keys.last : keys.last)
        guard keys.first <= last else { return [] }
        return Array(stride(from: keys.first, through: last, by: keys.step))
    }
}

/// How a handler left its command.
enum Outcome {
    /// The reply is written.
    case done
    /// The reply is written, and the connection is to be closed once it is sent.
    case close
    /// The reply comes from a thread that may block; nothing is written yet.
    case deferred(DeferredWork)
}

/// Runs on a worker and writes the reply.
/// - Returns: what is then done on the connection's loop, if anything.
typealias DeferredWork = @Sendable (inout ReplyBuffer) throws(CommandError) -> (@Sendable (Session) -> Void)?

/// An error reply.
struct CommandError: Error, Equatable {
    /// With its code: `ERR syntax error`. May repeat bytes of the request, which need not be UTF-8.
    let bytes: [UInt8]

    init(_ text: String) { bytes = Array(text.utf8) }

    /// Text with bytes of the request inside: `before`, `shown`, `behind`, `rest`.
    init(_ before: String, _ shown: [UInt8], _ behind: String, _ rest: [UInt8] = []) {
        bytes = Array(before.utf8) + shown + Array(behind.utf8) + rest
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    static let syntax = CommandError("ERR syntax error")
    static let notAnInteger = CommandError("ERR value is not an integer or out of range")

    static func tooLongReply(_ limits: Limits) -> CommandError {
        CommandError(
            "ERR the values are longer than \(limits.replyBytesMax) bytes together, the most in one reply (--max-reply)"
        )
    }

    static func arity(_ name: String) -> CommandError {
        CommandError("ERR wrong number of arguments for '\(name)' command")
    }

    /// What EXEC answers where it may not run.
    static func aborted(_ error: CommandError) -> CommandError {
        let text = error.bytes.starts(with: Array("ERR ".utf8)) ? Array(error.bytes.dropFirst(4)) : error.bytes
        return CommandError("EXECABORT Transaction discarded because of: ", text, "")
    }

    /// For commands that have subcommands.
    static func unknownSubcommand(_ call: Call, _ command: String) -> CommandError {
        CommandError("ERR unknown subcommand '", shown(call.bytes(1), 128), "'. Try \(command) HELP.")
    }

    init(_ error: LarderError) { self.init("ERR \(error)") }
}
