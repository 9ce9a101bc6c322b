import LarderEngine
import LarderRESP

/// What a command does with entries: which ones it reads or changes, and how it replies.
///
/// The planner of a command creates it from the command's words, and ``Call/perform(_:)`` executes it: alone, in a
/// transaction, for a script, in a snapshot, and in a database with an origin. If the entries must first be read from
/// the disk or the origin, nothing has happened yet, and the command is planned again later.
enum EntryPlan {
    /// Writes the reply to a read. It gets nil if there is no fresh entry. If it throws, the error is the reply.
    typealias Reply<Entry> = (Entry?, inout ReplyBuffer) throws(CommandError) -> Void

    /// Reply with the value of the key that is the word at an index, or with null.
    case value(Int)
    /// Read the value of the key that is the word at an index. The reply is written while a lock is held, so this must
    /// take little time.
    case read(Int, reply: Reply<UnsafeRawBufferPointer>)
    /// Read the header and the length of an entry.
    case facts(Int, Lookup, reply: (EntryFacts?, FreshnessRules, inout ReplyBuffer) throws(CommandError) -> Void)
    /// Reply only if none of these keys has an entry; otherwise with `failure`.
    case noEntries([Int], isCounted: Bool, failure: CommandError, reply: (inout ReplyBuffer) -> Void)
    /// Reply with the values of several keys, as they were at one instant.
    case values([Key])
    /// Reply with the number of keys that have an entry. A key that is given twice counts twice.
    case count([Key])
    /// Read several entries, as they were at one instant, and reply without holding a lock.
    /// - Parameter cost: the number of steps that the reply takes, given the lengths of the values. If there are many,
    ///   it is written on another thread.
    case records([Key], cost: ([Int]) -> Int, reply: ([Record?], inout ReplyBuffer) throws(CommandError) -> Void)
    case change(ChangePlan)
    case transfer(TransferPlan)
    case fetch(FetchWords)
    /// Make the plan where it does not delay other connections, because that processes this many bytes.
    indirect case long(bytes: Int, plan: () throws(CommandError) -> EntryPlan)

    /// How ``facts(_:_:reply:)`` finds an entry.
    enum Lookup {
        /// Find fresh entries, and count a hit or miss.
        case counted
        /// Find fresh entries. Count nothing, for commands whose reads Redis does not count.
        case uncounted
        /// Find stale entries too, except in transactions, in snapshots and in databases with an origin.
        case stale
    }
}

/// The header of an entry, and the length of its value in bytes.
struct EntryFacts {
    let header: RecordHeader
    let payloadCount: Int
    /// Whether the entry was not confirmed by the origin of the database, which may have a newer one.
    var isUnverified = false
}

/// A change of entries, which takes effect as a whole.
struct ChangePlan {
    /// Makes the change and returns the reply. Called with the locks held. An error that it throws is the reply; it must
    /// throw before it changes anything, unless the change shall be kept.
    typealias Body = (inout Update, ChangeContext) throws(CommandError) -> ChangeReply

    let keys: [Key]
    /// The parts of the existing entries that the body needs.
    var loading = Loading.records
    /// The value that is written to the disk before the change; nil if it is short.
    var staged: StagedValue?
    /// For a change that builds values, at least how many bytes one has; nil for other changes.
    var builtBytes: Int?
    /// Whether the total length of the entries that are read is limited, except that of the first one.
    var limitsSources = false
    /// The version of a change from another larder that the body applies; nil for a client's own change.
    var version: ChangeVersion?
    let body: Body
}

/// A long value that an ``ChangePlan`` stores for its only key, and the metadata that is stored with it.
struct StagedValue {
    let payload: UnsafeRawBufferPointer
    let grace: Int64?
    /// Returns the deadline rule of the entry; nil if nothing will be stored.
    let rule: (FreshnessRules) -> DeadlineRule?

    /// Returns nil if the value is short.
    init?(
        _ payload: UnsafeRawBufferPointer, grace: Int64?, rule: @escaping (FreshnessRules) -> DeadlineRule?
    ) {
        guard payload.count >= Database.largeValueBytesMin else { return nil }
        (self.payload, self.grace, self.rule) = (payload, grace, rule)
    }
}

/// What the body of an ``ChangePlan`` may use besides the entries.
struct ChangeContext {
    /// The file with the value that was staged; nil if the value is short.
    let long: LargeValue?
    let valueBytesMax: Int
    let thread: ThreadPlacement
    /// Whether the reads of the sources were counted before the change, when their lengths were checked.
    let hasCounted: Bool

    /// Throws if an update must not build a value of this many bytes on this thread.
    func admit(_ bytes: Int, _ update: Update) throws(CommandError) {
        guard bytes <= valueBytesMax - update.builtBytes else {
            throw CommandError(
                "ERR the values that one command or transaction builds exceed \(valueBytesMax) bytes")
        }
        guard thread.admits(bytes) else { throw .needsLongThread }
    }

    /// Counts the read of a key, unless that was done before the change.
    func countRead(_ index: Int, in update: Update) { if !hasCounted { _ = update.has(index) } }
}

/// Copying or moving an entry to another key or database.
struct TransferPlan {
    let key: Key
    /// The position of the word that names the other database; nil for the current one.
    let target: Int?
    let targetKey: Key
    /// Whether the entry is moved.
    let removes: Bool
    /// Whether an existing entry is replaced.
    let replaces: Bool
}

/// The reply to a change.
enum ChangeReply {
    case ok
    case null
    case integer(Int64)
    case text(String)
    case bulk(String)
    /// The value of an entry; null without one.
    case record(Record?)
    /// An array of numbers, with null for nil.
    case integers([Int64?])

    static func integer(_ number: Int) -> ChangeReply { .integer(Int64(number)) }
    static func flag(_ isTrue: Bool) -> ChangeReply { .integer(isTrue ? 1 : 0) }
}

extension EntryPlan {
    /// Change the entry of the key that is the word at index 1.
    static func change(
        _ words: CallWords, _ loading: Loading = .records, builtBytes: Int? = nil, _ body: @escaping ChangePlan.Body
    ) throws(CommandError) -> EntryPlan {
        .change(ChangePlan(keys: [try words.key(1)], loading: loading, builtBytes: builtBytes, body: body))
    }

    /// Apply an operation to the entry of the key that is the word at index 1.
    static func change(_ words: CallWords, _ operation: EntryOperation) throws(CommandError) -> EntryPlan {
        try .change(words) { (update, _) throws(CommandError) in .integer(try operation.apply(update, 0)) }
    }
}

extension ReplyBuffer {
    mutating func reply(_ answer: ChangeReply) {
        switch answer {
        case .ok: simple("OK")
        case .null: null()
        case .integer(let number): integer(number)
        case .text(let text): simple(text)
        case .bulk(let text): bulk(text)
        case .record(let record): value(record)
        case .integers(let numbers):
            array(count: numbers.count)
            for number in numbers { if let number { integer(number) } else { null() } }
        }
    }

    /// Replies with the value of an entry, or with null.
    mutating func value(_ record: Record?) {
        guard let record else { return null() }
        record.withPayload { bulk($0) }
    }
}

extension CommandError {
    /// Thrown when a value must be built on the thread for long values. It is not sent: the command runs again there.
    static let needsLongThread = CommandError("ERR the value must be built on another thread")
}
