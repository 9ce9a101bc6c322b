import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The plan of a command: which entries it reads or changes, and how it replies.
///
/// The planner of a command creates the plan from the command's words. ``Call/perform(_:)`` executes the plan, also in
/// transactions, scripts, snapshots, and databases with an origin. If entries must first be read from the disk or the
/// origin, the plan has no effect, and the command is planned again later.
enum EntryPlan {
    /// Plans what a command does with entries. A pure function of the words: a call may be planned several times.
    typealias Planner = @Sendable (CallWords) throws(CommandError) -> EntryPlan

    /// Writes the reply to a read; gets nil if there is no fresh entry. If it throws, the error is the reply.
    typealias Reply = (UnsafeRawBufferPointer?, inout ReplyBuffer) throws(CommandError) -> Void

    /// Writes the reply about an entry; gets nil if there is none. If it throws, nothing was written, and the error is
    /// the reply.
    typealias FactsReply = (EntryFacts?, FreshnessRules, inout ReplyBuffer) throws(CommandError) -> Void

    /// Reply with the value of the key at this position in the call, or with null. A planner must return this plan for
    /// all calls of the command with the same number of words, or for none.
    case value(Int)
    /// Read the value of the key at this position in the call. `reply` must take little time, because it is called
    /// while a lock is held.
    case read(Int, reply: Reply)
    /// Read the header and the length of an entry.
    case facts(Int, Lookup, reply: FactsReply)
    /// Reply with `failure` if one of these keys has an entry; otherwise, call `reply`.
    case noEntries([Int], isCounted: Bool, failure: CommandError, reply: (inout ReplyBuffer) -> Void)
    /// Reply with the values of all keys in the call, as they were at one instant. The keys begin at position 1.
    case values
    /// Reply with the number of keys that have an entry. A key that is given twice counts twice.
    case count([Key])
    /// Read several entries, as they were at one instant, and reply without holding a lock.
    /// - Parameter cost: returns how many steps `reply` takes, given the lengths of the values. If there are many,
    ///   another thread writes the reply.
    case records([Key], cost: ([Int]) -> Int, reply: ([Record?], inout ReplyBuffer) throws(CommandError) -> Void)
    /// Apply an operation to the entry of the key at position 1.
    case apply(EntryOperation)
    /// Store the word at position 2 as the value of the key at position 1.
    case store(SetOptions)
    case change(ChangePlan)
    case transfer(TransferPlan)
    case fetch(FetchWords)
    /// Call `plan` on a thread where it does not delay other connections, because the call processes this many bytes.
    indirect case long(bytes: Int, plan: () throws(CommandError) -> EntryPlan)

    /// How ``facts(_:_:reply:)`` finds an entry.
    enum Lookup {
        /// Find fresh entries, and count a hit or miss.
        case counted
        /// Find fresh entries, and count nothing. For commands whose reads are not counted in Redis either.
        case uncounted
        /// Find fresh and stale entries; in transactions, snapshots, and databases with an origin, only fresh ones.
        case stale
    }
}

/// The header of an entry, and the length of its value in bytes.
struct EntryFacts {
    let header: RecordHeader
    let payloadCount: Int
    /// Whether the database's origin has not confirmed the entry, and may have a newer value.
    var isUnverified = false
}

/// A change of entries. All its writes are committed together.
struct ChangePlan {
    /// Makes the change, and returns the reply. Called with the locks held. If it throws, the error is the reply, and
    /// the changes that it has already made are kept.
    typealias Body = (inout Update, ChangeContext) throws(CommandError) -> ChangeReply

    let keys: [Key]
    /// The parts of the existing entries that the body needs.
    var loading = Loading.records
    /// The value that is written to the disk before the change; nil if the value is short.
    var staged: StagedValue?
    /// For a change that builds a value, a lower bound for the length of that value, in bytes; otherwise nil.
    var builtBytes: Int?
    /// Whether the values of all keys except the first are sources, whose total length is limited.
    var limitsSources = false
    /// If the body applies a change that was made in another larder, the version of that change; otherwise nil.
    var version: ChangeVersion?
    let body: Body
}

extension ChangePlan {
    /// Stores one value for each key.
    fileprivate init(
        storing values: [UnsafeRawBufferPointer], _ keys: [Key], _ options: SetOptions, now: Int64,
        _ answer: @escaping (Record?, Bool) -> ChangeReply
    ) {
        var staged: StagedValue?
        if keys.count == 1, !options.hasTags {
            staged = StagedValue(values[0], grace: options.grace) { options.rule(nil, $0, now: now) }
        }
        self.init(keys: keys, loading: options.loading, staged: staged) { update, context in
            let previous = options.returnsPrevious ? update.readRecord(0) : nil
            return answer(previous, options.store(values, long: context.long, in: update))
        }
    }

    /// Stores a value as SET does.
    init(storing value: UnsafeRawBufferPointer, _ key: Key, _ options: SetOptions, now: Int64) {
        self.init(storing: [value], [key], options, now: now) { previous, isStored in
            options.returnsPrevious ? .record(previous) : isStored ? .ok : .null
        }
    }

    init(_ operation: EntryOperation, _ key: Key) {
        self.init(keys: [key], loading: operation.loading) { (update, _) throws(CommandError) in
            .integer(try operation.apply(update, 0))
        }
    }
}

/// A long value and its metadata. A ``ChangePlan`` with only one key stores the value.
struct StagedValue {
    let payload: UnsafeRawBufferPointer
    let grace: Int64?
    /// Returns the deadline rule of the entry; nil if nothing will be stored.
    let rule: (FreshnessRules) -> DeadlineRule?

    /// Returns nil if the value is short.
    init?(_ payload: UnsafeRawBufferPointer, grace: Int64?, rule: @escaping (FreshnessRules) -> DeadlineRule?) {
        guard payload.count >= Database.largeValueBytesMin else { return nil }
        (self.payload, self.grace, self.rule) = (payload, grace, rule)
    }
}

/// The values and limits that the body of a ``ChangePlan`` may use in addition to the entries.
struct ChangeContext {
    /// The file with the staged value; nil if none was staged.
    let long: LargeValue?
    let valueBytesMax: Int
    let thread: ThreadPlacement
    /// Whether the reads of the sources are already counted, because a check of their lengths has read the sources.
    let hasCounted: Bool

    /// Throws if an update must not build a value of this many bytes on this thread.
    func admit(_ bytes: Int, _ update: Update) throws(CommandError) {
        guard bytes <= valueBytesMax - update.builtBytes else {
            throw CommandError(
                "ERR the values that one command or transaction builds exceed \(valueBytesMax) bytes")
        }
        guard thread.admits(bytes) else { throw .needsLongThread }
    }

    /// Throws if a text of this many bytes must not be parsed on this thread.
    func admit(parsing bytes: Int) throws(CommandError) {
        guard thread.admits(bytes * Limits.parsingCost) else { throw .needsLongThread }
    }

    /// Counts the read of a key, unless it is already counted.
    func countRead(_ index: Int, in update: Update) { if !hasCounted { _ = update.has(index) } }
}

/// A copy or a move of an entry to another key or database.
struct TransferPlan {
    let key: Key
    /// The position of the word that names the target database; nil for the current database.
    let target: Int?
    let targetKey: Key
    /// Whether the original entry is removed.
    let removes: Bool
    /// Whether an existing entry of the target key is replaced.
    let replaces: Bool
}

enum ChangeReply {
    case ok
    case null
    case integer(Int64)
    case text(String)
    case bulk(String)
    /// The value of an entry; null without one.
    case record(Record?)
    /// The value of an entry in memory. Valid while the entry is locked.
    case payload(UnsafeRawBufferPointer)
    /// Any reply, which the function writes.
    case written((inout ReplyBuffer) -> Void)

    static func integer(_ number: Int) -> ChangeReply { .integer(Int64(number)) }
    static func flag(_ isTrue: Bool) -> ChangeReply { .integer(isTrue ? 1 : 0) }
}

extension EntryPlan {
    /// Change the entry of the key at position 1.
    static func change(
        _ words: CallWords, _ loading: Loading = .records, builtBytes: Int? = nil, _ body: @escaping ChangePlan.Body
    ) throws(CommandError) -> EntryPlan {
        .change(ChangePlan(keys: [try words.key(1)], loading: loading, builtBytes: builtBytes, body: body))
    }

    /// The same plan; if the command may take long, it is made on a thread where it does not delay other connections.
    func offLoop(if mayTakeLong: Bool) -> EntryPlan { mayTakeLong ? .long(bytes: .max) { self } : self }

    /// Store one value for each key, for variants of SET.
    /// - Parameter answer: called with the previous entry of the first key, and with whether the values were stored.
    ///   The entry is nil if the options do not request it.
    static func store(
        _ keys: [Key], _ values: [UnsafeRawBufferPointer], _ options: SetOptions, _ words: CallWords,
        _ answer: @escaping (Record?, Bool) -> ChangeReply
    ) -> EntryPlan {
        .change(ChangePlan(storing: values, keys, options, now: words.now, answer))
    }
}

extension EntryPlan {
    /// The maximum length in bytes of a value that ``perform(on:_:)`` stores or copies.
    private static let quickBytesMax = 64 << 10

    /// Executes a plan for one key on entries in memory, as event loops and scripts do.
    /// - Parameter entries: an update whose locks are held. It must contain the key.
    /// - Returns: the result; nil, without an effect, if the plan must be executed by ``Call/perform(_:)``.
    @inline(__always)
    func perform(on entries: Update, _ words: CallWords) -> ChangeReply? {
        guard words.count >= 2, let index = entries.index(of: words.bytes(1)) else { return nil }
        switch self {
        case .value(1): return entries.read(index).map { .payload($0) } ?? .null
        case .apply(let operation):
            // Setting a deadline copies the value.
            if case .expire = operation, entries.payload(index)?.count ?? 0 > Self.quickBytesMax { return nil }
            return (try? operation.apply(entries, index)).map { .integer($0) }
        case .store(let options):
            let value = words.bytes(2)
            guard value.count <= Self.quickBytesMax, options.isSimple else { return nil }
            return options.store(CollectionOfOne(value), at: index, in: entries) ? .ok : .null
        default: return nil
        }
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
        case .payload(let bytes): bulk(bytes)
        case .written(let write): write(&self)
        }
    }

    /// Replies with the remaining lifetime of an entry, as TTL does.
    mutating func remaining(_ facts: EntryFacts?, _ rules: FreshnessRules, now: Int64, inSeconds: Bool) {
        guard let facts else { return integer(EntryOperation.noEntry) }
        integer(EntryOperation.remaining(rules.deadline(facts.header), now: now, inSeconds: inSeconds))
    }

    /// Replies with the value of an entry, or with null.
    mutating func value(_ record: Record?) {
        guard let record else { return null() }
        record.withPayload { bulk($0) }
    }
}

extension CommandError {
    /// Thrown if a value must be built on the thread for long values: the command then runs again there. Never sent.
    static let needsLongThread = CommandError("ERR the value must be built on another thread")
}

/// The words of a call, without access to its session. A function that gets only these words, such as a planner, can
/// have no side effects.
///
/// Counts no references, because all event loops would change the same counters. Valid while the command runs: the
/// caller keeps the words, the session keeps the server, and rows are never freed.
struct CallWords: CommandWords {
    /// The place where the words are stored.
    enum Source {
        case request(RequestArguments)
        /// A command in a transaction, or a recorded one of a script.
        case queued(Unmanaged<QueuedCommand>)
        /// A command that a script has called.
        case script(UnsafeBufferPointer<larder_script_word>)
    }

    let source: Source
    /// The command's row in the table of commands; nil for an unknown command.
    unowned(unsafe) var row: CommandMetadata?
    unowned(unsafe) let server: ServerState
    let now: Int64

    var count: Int {
        switch source {
        case .request(let words): words.count
        case .queued(let command): command._withUnsafeGuaranteedRef { $0.count }
        case .script(let words): words.count
        }
    }

    func bytes(_ index: Int) -> UnsafeRawBufferPointer {
        switch source {
        case .request(let words): words[index]
        case .queued(let command): command._withUnsafeGuaranteedRef { $0[index] }
        case .script(let words): UnsafeRawBufferPointer(words[index])
        }
    }

    var name: String { row?.name ?? "" }
    var timeAhead: Int64 { server.engine.clockOffsetMilliseconds }
    /// The limit for a value that a command builds, in bytes.
    var valueBytesMax: Int { server.limits.valueBytesMax }
}
