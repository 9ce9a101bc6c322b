// The types of the fields of a command's row.

/// The subject of a command.
package enum CommandGroup: String, Sendable {
    case string, bitmap, generic, transactions, scripting, pubsub, connection, server, larder
    case hash, set, list, stream, geo
    case sortedSet = "sorted-set"

    /// Redis' access list category for such commands.
    package var category: String? {
        switch self {
        case .string: "string"
        case .bitmap: "bitmap"
        case .generic: "keyspace"
        case .connection: "connection"
        case .transactions: "transaction"
        case .scripting: "scripting"
        case .sortedSet: "sortedset"
        case .hash, .set, .list, .stream, .geo: rawValue
        case .pubsub, .server, .larder: nil
        }
    }
}

extension CommandGroup {
    /// The kind of value that the group's commands use.
    var valueName: String {
        switch self {
        case .sortedSet: "sorted set"
        case .geo: "set of places"
        default: rawValue
        }
    }
}

/// The reply of a command for a type of value that Larder does not store: Redis' reply for a missing key.
package struct AbsentReply: Sendable {
    package indirect enum Form: Sendable {
        case zero, null, nullArray, emptyArray, emptySet, emptyMap, emptyScan, ok
        /// An array with this reply for each word of the call, starting at `from`.
        case each(Form, from: Int)
        /// The first form, or the second one if a count follows the key.
        case counted(Form, Form)
        /// The first form, or the second one if the option COUNT is given.
        case withCOUNT(Form, Form)

        var text: String {
            switch self {
            case .zero: "0"
            case .null, .nullArray: "null"
            case .emptyArray: "empty array"
            case .emptySet: "empty set"
            case .emptyMap: "empty map"
            case .emptyScan: "cursor 0 and an empty array"
            case .ok: "OK"
            case .each(let form, _): "array with \(form.text) for each"
            case .counted(let form, let other): "\(form.text); with a count \(other.text)"
            case .withCOUNT(let form, let other): "\(form.text); with COUNT \(other.text)"
            }
        }
    }

    /// The words that Redis checks before it looks up the key.
    package enum Check: Sendable {
        case nothing
        case integers(ClosedRange<Int>)
        /// The two words after the key must be numbers, each optionally after a `(`.
        case scores
        /// The two words after the key must be `-`, `+`, or a member after `(` or `[`.
        case members
        /// The two words after the key must be integers; with the option BYSCORE or BYLEX, scores or members.
        case ranks
        /// The word after the key, a cursor.
        case cursor
        /// The word after the key, if there is one, must be an integer.
        case count
        /// The word after the key, if there is one, must be a non-negative integer.
        case positiveCount
    }

    package let form: Form
    package let check: Check
}

/// The positions of keys among the arguments. The name has position 0; `last` may count from the end, with -1 for the
/// last word.
package struct KeyPositions: Sendable {
    package let first: Int
    package let last: Int
    package let step: Int
    /// The argument with the number of keys; 0 if there is none.
    package var countAt = 0

    /// Whether the argument at a position may be a key, based on the position alone.
    package func mayContain(_ position: Int) -> Bool {
        guard first > 0, position >= first, (position - first) % step == 0 else { return false }
        return last <= 0 || position <= last
    }

    package static let none = KeyPositions(first: 0, last: 0, step: 0)
    package static let one = KeyPositions(first: 1, last: 1, step: 1)
    package static let second = KeyPositions(first: 2, last: 2, step: 1)
    package static let two = KeyPositions(first: 1, last: 2, step: 1)
    package static let all = KeyPositions(first: 1, last: -1, step: 1)
    package static let pairs = KeyPositions(first: 1, last: -1, step: 2)
    /// A number, followed by as many keys, each with a value.
    package static let countedPairs = KeyPositions(first: 2, last: 0, step: 2, countAt: 1)
    /// A number, followed by as many keys.
    package static let countedFirst = KeyPositions(first: 2, last: 0, step: 1, countAt: 1)
    /// After a script: a number, followed by as many keys.
    package static let counted = KeyPositions(first: 3, last: 0, step: 1, countAt: 2)
}

/// How the words of a call affect the use of its key.
package enum KeyUse: Sendable {
    /// The words do not affect the use of the key.
    case same
    /// The key is overwritten without being read, unless the option GET is given.
    case overwritesUnlessGET
    /// The key is only read if all operations are GET.
    case readsIfOnlyGET
}

/// The calls that overwrite all their keys unconditionally, and cannot fail.
package enum Overwriting: Sendable {
    case never
    /// Calls with this many words.
    case words(Int)
    /// Calls with complete pairs.
    case pairs
}

/// The database that a call names.
package enum DatabaseArgument: Equatable, Sendable {
    case none
    /// The second word: the database for the following commands.
    case selected
    /// A word: the destination database of a key.
    case target(name: Int, key: Int)
    /// The word after the option DB: the destination database of a key.
    case targetOption(key: Int)
    /// The two words after the name.
    case both
    /// No word: all databases.
    case all

    /// Whether the words name all databases that the call uses.
    package var namesAll: Bool { self == .both }
    package var isSelection: Bool { if case .selected = self { true } else { false } }
}

/// The secret words of a call.
package enum SecretWords: Sendable {
    case none
    /// All words from this position.
    case from(Int)
    /// The two words after AUTH.
    case afterAUTH
    /// The secret words of the nested call at this position.
    case ofCall(from: Int)
    /// The words after the name of a secret setting.
    case ofSecretSettings
}

/// The format of a reply that is text.
package enum TextForm: Sendable {
    /// Not meant for programs.
    case plain
    /// Sections of fields, as in INFO.
    case sections
    /// A line of fields.
    case fields
    /// Lines of fields.
    case linesOfFields
}

/// The effect of a command on its connection, in addition to its reply.
package enum ConnectionEffect: Sendable {
    case none
    /// Sets its name, for lists of connections.
    case names
    /// Sets its user or protocol.
    case introduces
    case selectsDatabase
    case beginsTransaction
    /// Ends a transaction, or watches.
    case endsTransaction
    /// Changes the meaning of following commands, or the messages that are received.
    case changesState
    /// Resets all state.
    case resets
    /// Following requests may have no reply.
    case silences
    /// The results are messages, which are sent after the command's reply or instead of it.
    case streams
    case closes
    /// Stops the daemon, which closes the connection without a reply.
    case endsDaemon
}

/// The kind of a write, which determines the events of its entries.
package enum WriteTag: UInt16, Sendable {
    case other, set, append, setrange, incrby, incrbyfloat, setbit, bitop, delete, getex, expire, persist, rename, copy,
        move, restore
    /// A SET that keeps the deadline.
    case setKeeping
}

/// Redis' hints to clients, in Redis' words.
package enum CommandTip: String, Sendable {
    case output = "nondeterministic_output"
    case outputOrder = "nondeterministic_output_order"
    case requestMultiShard = "request_policy:multi_shard"
    case requestAllShards = "request_policy:all_shards"
    case requestAllNodes = "request_policy:all_nodes"
    case requestSpecial = "request_policy:special"
    case responseSum = "response_policy:agg_sum"
    case responseLogicalAnd = "response_policy:agg_logical_and"
    case responseOneSucceeded = "response_policy:one_succeeded"
    case responseMinimum = "response_policy:agg_min"
    case responseAllSucceeded = "response_policy:all_succeeded"
    case responseSpecial = "response_policy:special"
}
