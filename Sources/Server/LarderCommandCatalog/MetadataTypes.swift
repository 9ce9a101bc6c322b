// The types of the properties of ``CommandMetadata``.

/// The group to which a command belongs in the documentation.
package enum CommandGroup: String, Sendable {
    case string, bitmap, json, generic, transactions, scripting, pubsub, connection, server, larder
    case hash, set, list, stream, geo
    case sortedSet = "sorted-set"

    /// The access-list category of Redis that contains the commands of this group; nil if there is none.
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
        case .json, .pubsub, .server, .larder: nil
        }
    }
}

extension CommandGroup {
    /// The name of the type of values that the commands of this group use.
    var valueName: String {
        switch self {
        case .sortedSet: "sorted set"
        case .geo: "set of places"
        default: rawValue
        }
    }
}

/// The reply of a command for a type of values that Larder does not store: Redis' reply for a missing key.
package struct AbsentReply: Sendable {
    package indirect enum Form: Sendable {
        case zero, null, nullArray, emptyArray, emptySet, emptyMap, emptyScan, ok
        /// An array that contains this reply for each word of the call, beginning with the word at the position `from`.
        case each(Form, from: Int)
        /// The first reply; if a count follows the key, the second reply.
        case counted(Form, Form)
        /// The first reply; if the call has the option COUNT, the second reply.
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

    /// The words of a call that Redis checks before it reads the key. A wrong word is an error even for a missing key.
    package enum Check: Sendable {
        case nothing
        case integers(ClosedRange<Int>)
        /// The two words after the key must be numbers. A `(` may precede each of them.
        case scores
        /// Each of the two words after the key must be `-`, `+`, or a member that follows `(` or `[`.
        case members
        /// The two words after the key must be integers. With the option BYSCORE, they are checked like ``scores``;
        /// with BYLEX, like ``members``.
        case ranks
        /// The word after the key must be a cursor.
        case cursor
        /// The word after the key is optional, but must be an integer.
        case count
        /// The word after the key is optional, but must be an integer that is not negative.
        case positiveCount
    }

    package let form: Form
    package let check: Check
}

/// The positions of the keys in a call. Position 0 is the command's name. A negative `last` is counted from the end,
/// where -1 is the last word.
package struct KeyPositions: Sendable {
    package let first: Int
    package let last: Int
    package let step: Int
    /// The position of the word that contains the number of keys; 0 if there is no such word.
    package var countAt = 0

    /// Whether the word at a position can be a key. Only the position is considered.
    package func mayContain(_ position: Int) -> Bool {
        guard first > 0, position >= first, (position - first) % step == 0 else { return false }
        return last <= 0 || position <= last
    }

    package static let none = KeyPositions(first: 0, last: 0, step: 0)
    package static let one = KeyPositions(first: 1, last: 1, step: 1)
    package static let second = KeyPositions(first: 2, last: 2, step: 1)
    package static let two = KeyPositions(first: 1, last: 2, step: 1)
    package static let all = KeyPositions(first: 1, last: -1, step: 1)
    package static let allButLast = KeyPositions(first: 1, last: -2, step: 1)
    package static let pairs = KeyPositions(first: 1, last: -1, step: 2)
    package static let triples = KeyPositions(first: 1, last: -1, step: 3)
    /// After the name: the number of keys, then the keys, each followed by a value.
    package static let countedPairs = KeyPositions(first: 2, last: 0, step: 2, countAt: 1)
    /// After the name: the number of keys, then the keys.
    package static let countedFirst = KeyPositions(first: 2, last: 0, step: 1, countAt: 1)
    /// After the name: a script, the number of keys, then the keys.
    package static let counted = KeyPositions(first: 3, last: 0, step: 1, countAt: 2)
}

/// Whether the words of a call change how the command uses its key.
package enum KeyUse: Sendable {
    /// All calls use the key in the same way.
    case same
    /// A call overwrites the key without reading it. A call with the option GET also reads the key.
    case overwritesUnlessGET
    /// If all operations of a call are GET, the call only reads the key. Every other call also writes the key.
    case readsIfOnlyGET
}

/// The calls of a command that cannot fail, and that overwrite all keys without reading them.
package enum Overwriting: Sendable {
    case never
    /// Calls with this number of words.
    case words(Int)
    /// Calls that consist of keys, each with a value.
    case pairs
}

/// Which words of a call name a database.
package enum DatabaseArgument: Equatable, Sendable {
    case none
    /// The second word, which names the database for the next commands.
    case selected
    /// The word at `name`. The command writes the key at the position `key` in that database.
    case target(name: Int, key: Int)
    /// The word after the option DB. The command writes the key at the position `key` in that database.
    case targetOption(key: Int)
    /// The two words after the command's name.
    case both
    /// No word. The command uses all databases.
    case all

    /// Whether the call uses only the databases that its words name, so that the selected database does not matter.
    package var namesAll: Bool { self == .both }
    package var isSelection: Bool { if case .selected = self { true } else { false } }
}

/// Which words of a call are secret.
package enum SecretWords: Sendable {
    case none
    /// All words from this position on.
    case from(Int)
    /// The two words after the word AUTH.
    case afterAUTH
    /// The secret words of the call that begins at this position.
    case ofCall(from: Int)
    /// The words after the name of a secret setting.
    case ofSecretSettings
}

/// The format of a text in a reply.
package enum TextForm: Sendable {
    /// A text for people, without a fixed format.
    case plain
    /// Several sections of fields, as in INFO.
    case sections
    /// One line of fields, as in CLIENT INFO.
    case fields
    /// Several lines of fields, as in CLIENT LIST.
    case linesOfFields
}

/// The effect of a command on its connection, in addition to the reply.
package enum ConnectionEffect: Sendable {
    case none
    /// Sets a name that CLIENT LIST shows for the connection.
    case names
    /// Sets the connection's user or its protocol version.
    case introduces
    case selectsDatabase
    case beginsTransaction
    /// Ends a transaction, or ends watches.
    case endsTransaction
    /// Changes the effect of the next commands, or which messages the client receives.
    case changesState
    /// Resets the whole state of the connection.
    case resets
    /// May switch off the replies to the next commands.
    case silences
    /// Returns its results as messages, after the reply or instead of the reply.
    case streams
    case closes
    /// Stops the daemon, which then closes the connection without a reply.
    case endsDaemon
}

/// The kind of a write. It determines which events are published for the entries that were written.
package enum WriteTag: UInt16, Sendable {
    case other, set, append, setrange, incrby, incrbyfloat, setbit, bitop, delete, getex, expire, persist, rename, copy,
        move, restore
    /// A SET that keeps the deadline of the entry.
    case setKeeping
}

/// The hints to clients that COMMAND shows. The texts are those of Redis.
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
