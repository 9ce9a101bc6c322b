// The types of the facts in a command's row.

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
    /// The values that its commands work on.
    var valueName: String {
        switch self {
        case .sortedSet: "sorted set"
        case .geo: "set of places"
        default: rawValue
        }
    }
}

/// The reply of a command for a type of value that Larder does not store: Redis' for a key without a value.
package struct AbsentReply: Sendable {
    package indirect enum Form: Sendable {
        case zero, null, nullArray, emptyArray, emptySet, emptyMap, emptyScan, ok
        /// An array with this reply for each word of the call from one on.
        case each(Form, from: Int)
        /// The first; the second if a count follows the key.
        case counted(Form, Form)
        /// The first; the second if the option COUNT is given.
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

    /// Which words Redis checks before it looks for the key.
    package enum Check: Sendable {
        case nothing
        case integers(ClosedRange<Int>)
        /// The two words after the key: numbers, each perhaps after a `(`.
        case scores
        /// The same: `-`, `+`, or a member after `(` or `[`.
        case members
        /// The same: integers, or with an option BYSCORE or BYLEX what that asks for.
        case ranks
        /// The word behind the key, a cursor.
        case cursor
        /// The word behind the key, if there is one: an integer.
        case count
        /// The same, not negative.
        case positiveCount
    }

    package let form: Form
    package let check: Check
}

/// Which arguments are keys. Positions count from the name, which is 0; `last` may count from the end, with -1 for the
/// last word.
package struct KeyPositions: Sendable {
    package let first: Int
    package let last: Int
    package let step: Int
    /// The argument with the number of keys; 0 if there is none.
    package var countAt = 0

    /// Whether the argument at a position may be a key, as far as the position alone tells.
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
    /// A number, then as many keys, each with something behind it.
    package static let countedPairs = KeyPositions(first: 2, last: 0, step: 2, countAt: 1)
    /// A number, then as many keys.
    package static let countedFirst = KeyPositions(first: 2, last: 0, step: 1, countAt: 1)
    /// Behind a script: a number, then as many keys.
    package static let counted = KeyPositions(first: 3, last: 0, step: 1, countAt: 2)
}

/// How the words of a call change the use of its key.
package enum KeyUse: Sendable {
    /// They do not change it.
    case same
    /// The key is only overwritten, unless GET follows the value.
    case overwritesUnlessGET
    /// The key is only read if all operations are GET.
    case readsIfOnlyGET
}

/// Which calls store all their keys unconditionally, and cannot fail.
package enum Overwriting: Sendable {
    case never
    /// Calls with so many words.
    case words(Int)
    /// Calls with complete pairs.
    case pairs
}

/// The database that a call names.
package enum DatabaseArgument: Equatable, Sendable {
    case none
    /// The second word: the database of the commands that follow.
    case selected
    /// A word: the database to which a key goes.
    case target(name: Int, key: Int)
    /// The word behind the option DB: the database to which a key goes.
    case targetOption(key: Int)
    /// Both words behind the name.
    case both
    /// No word: all databases.
    case all

    /// Whether the words name all databases that the call concerns.
    package var namesAll: Bool { self == .both }
    package var isSelection: Bool { if case .selected = self { true } else { false } }
}

/// Which words of a call are secret.
package enum SecretWords: Sendable {
    case none
    /// All from this word on.
    case from(Int)
    /// The two behind AUTH.
    case afterAUTH
    /// Those of the call that begins with this word.
    case ofCall(from: Int)
    /// The words behind the name of a secret setting.
    case ofSecretSettings
}

/// What is written in a reply that is text.
package enum TextForm: Sendable {
    /// Nothing that programs read.
    case plain
    /// Sections of fields, as those of INFO.
    case sections
    /// A line of fields.
    case fields
    /// Lines of fields.
    case linesOfFields
}

/// What a command does to the connection that it came by, beyond its reply.
package enum ConnectionEffect: Sendable {
    case none
    /// Names it, for those who list connections.
    case names
    /// Says who uses it, or in which protocol.
    case introduces
    case selectsDatabase
    case beginsTransaction
    /// Ends a transaction, or what was watched for one.
    case endsTransaction
    /// Changes what commands behind it mean, or what comes without being asked for.
    case changesState
    /// Takes back whatever commands have changed.
    case resets
    /// Requests behind it may have no reply.
    case silences
    /// What it is about comes as messages, behind its reply or instead of one.
    case streams
    case closes
    /// The daemon ends, and the connection with it, instead of answering.
    case endsDaemon
}

/// The name of a write in the events of its entries.
package enum WriteTag: UInt16, Sendable {
    case other, set, append, setrange, incrby, incrbyfloat, setbit, bitop, delete, getex, expire, persist, rename, copy,
        move, restore
    /// SET that keeps the deadline.
    case setKeeping
}

/// Redis' hints to clients, in its words.
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
