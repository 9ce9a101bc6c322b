// The kinds of facts that a row has.

/// What a command is about.
package enum CommandGroup: String, Sendable {
    case string, bitmap, generic, transactions, pubsub, connection, server, larder

    /// The category of access lists that Redis has for such commands.
    package var category: String? {
        switch self {
        case .string: "string"
        case .bitmap: "bitmap"
        case .generic: "keyspace"
        case .connection: "connection"
        case .transactions: "transaction"
        case .pubsub, .server, .larder: nil
        }
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

/// How the words of a call change what is done with its key.
package enum KeyUse: Sendable {
    /// They do not.
    case same
    /// It is only overwritten, unless GET stands behind the value.
    case overwritesUnlessGET
    /// It is only read if all operations are GET.
    case readsIfOnlyGET
}

/// Which calls store all their keys whatever is there, and cannot fail.
package enum Overwriting: Sendable {
    case never
    /// Those of so many words.
    case words(Int)
    /// Those of complete pairs.
    case pairs
}

/// The database that the words of a call name.
package enum DatabaseArgument: Sendable {
    case none
    /// The second word, as the database of the commands that follow.
    case selected
    /// A word, as the database to which a key goes.
    case target(name: Int, key: Int)
    /// The word behind the option DB, as the database to which a key goes.
    case targetOption(key: Int)
}

/// Which words of a call are not shown to anybody.
package enum SecretWords: Sendable {
    case none
    /// All arguments.
    case all
    /// The two behind AUTH.
    case afterAUTH
    /// What is behind the name of a setting that is a secret.
    case ofSecretSettings
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

/// What a write is called in the events of its entries.
package enum WriteTag: UInt16, Sendable {
    case other, set, append, setrange, incrby, incrbyfloat, setbit, bitop, delete, getex, expire, persist, rename, copy,
        move, restore
    /// SET that keeps the deadline.
    case setKeeping
}

/// What Redis advises clients of, in its words.
package enum CommandTip: String, Sendable {
    case output = "nondeterministic_output"
    case outputOrder = "nondeterministic_output_order"
    case requestMultiShard = "request_policy:multi_shard"
    case requestAllShards = "request_policy:all_shards"
    case requestAllNodes = "request_policy:all_nodes"
    case requestSpecial = "request_policy:special"
    case responseSum = "response_policy:agg_sum"
    case responseMinimum = "response_policy:agg_min"
    case responseAllSucceeded = "response_policy:all_succeeded"
    case responseSpecial = "response_policy:special"
}
