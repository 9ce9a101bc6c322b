import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The keys and databases that the commands of a transaction use. Computed before any lock is taken.
struct TransactionPlan {
    /// The keys that the transaction uses in one database.
    struct Part {
        let database: Database
        /// The index that each key has in the engine's list of keys.
        private(set) var positions: [Key: Int] = [:]
        private var loaded: [Key] = []
        private var blind: [Key] = []
        fileprivate var watches: [KeyWatch] = []
        fileprivate(set) var isWritten = false
        fileprivate(set) var mayBeWritten = false
        fileprivate(set) var isCreated = false

        fileprivate init(_ database: Database) { self.database = database }

        /// Adds a key, unless the part contains it.
        /// - Parameter isBlind: whether the first command that uses the key overwrites it without reading it.
        fileprivate mutating func add(_ key: Key, isBlind: Bool) {
            guard positions[key] == nil else { return }
            positions[key] = isBlind ? -1 - blind.count : loaded.count
            if isBlind { blind.append(key) } else { loaded.append(key) }
        }

        /// Converts the part to the form for the engine. After that, ``positions`` does not change.
        fileprivate mutating func complete() -> TransactionPart {
            for (index, key) in blind.enumerated() { positions[key] = loaded.count + index }
            return TransactionPart(
                database: database, keys: loaded + blind, loadedCount: loaded.count, watches: watches)
        }

        /// Whether the database's files must be open for writing before the commands can run.
        var needsWritableFiles: Bool { isCreated || isWritten && database.exists }
    }

    /// One part for each database, in the order in which the transaction first uses them.
    private(set) var parts: [Part] = []
    private(set) var engineParts: [TransactionPart] = []
    /// The databases that commands name, by name. For an invalid name, the error.
    private(set) var databases: [String: Result<Database, LarderError>] = [:]

    /// - Parameters:
    ///   - commands: the commands that have not run yet, in their order.
    ///   - database: the database that is selected before the first of these commands.
    ///   - loadsAll: whether the values of keys must be read even if the commands only overwrite them.
    init(
        _ commands: ArraySlice<QueuedCommand>, in database: Database, watches: [KeyWatch],
        alsoNeeded: [TransactionMissing], loadsAll: Bool, engine: Engine
    ) {
        // Add the watched keys first, so that they are read even if the commands only overwrite them.
        for watch in watches {
            let index = part(watch.database)
            parts[index].add(watch.key, isBlind: false)
            parts[index].watches.append(watch)
        }
        var current = database
        // A script may read any key, even one that a later command overwrites.
        let loadsAll = loadsAll || commands.contains { $0.row.flags.contains(.runsScript) }
        for command in commands {
            if case .selected = command.row.database {
                if case .success(let selected) = resolve(command.text(1), engine) { current = selected }
                continue
            }
            note(command, current, loadsAll)
            noteTarget(command, current, engine)
        }
        for missing in alsoNeeded {
            switch missing {
            case .key(let database, let key):
                let index = part(database)
                parts[index].add(key, isBlind: false)
            case .files(let database):
                let index = part(database)
                parts[index].isCreated = true
            case .database(let name): _ = resolve(name, engine)
            }
        }
        engineParts = parts.indices.map { parts[$0].complete() }
    }

    private mutating func note(_ command: QueuedCommand, _ database: Database, _ loadsAll: Bool) {
        let row = command.row
        let indices = row.keyIndices(count: command.count) { command[$0] }
        let isScript = row.flags.contains(.runsScript)
        guard !indices.isEmpty || isScript || row.flags.contains(.write) && !row.flags.contains(.wholeDatabase) else {
            return
        }
        let index = part(database)
        // Whether a script writes is unknown until it has run.
        if isScript, !row.flags.contains(.readonly) { parts[index].mayBeWritten = true }
        if row.flags.contains(.write) { parts[index].isWritten = true }
        if row.flags.contains(.creates) { parts[index].isCreated = true }
        let isBlind = command.overwritesBlindly && !loadsAll
        for position in indices where command[position].count <= Key.bytesMax {
            parts[index].add(Key(command[position]), isBlind: isBlind)
        }
    }

    /// Adds the key in another database to which MOVE or COPY writes.
    private mutating func noteTarget(_ command: QueuedCommand, _ database: Database, _ engine: Engine) {
        let place: (name: Int, key: Int)
        switch command.row.database {
        case .none, .selected, .both, .all: return
        case .target(let name, let key): place = (name, key)
        case .targetOption(let key):
            let option = (key + 1..<max(key + 1, command.count - 1)).last { equalsIgnoringCase(command[$0], "DB") }
            guard let option else { return }
            place = (option + 1, key)
        }
        guard command[place.key].count <= Key.bytesMax,
            case .success(let target) = resolve(command.text(place.name), engine), target !== database
        else { return }
        let index = part(target)
        parts[index].isWritten = true
        parts[index].add(Key(command[place.key]), isBlind: false)
    }

    private mutating func part(_ database: Database) -> Int {
        if let index = parts.firstIndex(where: { $0.database === database }) { return index }
        parts.append(Part(database))
        return parts.count - 1
    }

    private mutating func resolve(_ name: String, _ engine: Engine) -> Result<Database, LarderError> {
        if let known = databases[name] { return known }
        let result: Result<Database, LarderError>
        do throws(LarderError) { result = .success(try engine.database(name)) } catch { result = .failure(error) }
        databases[name] = result
        return result
    }
}

/// Something that a transaction needs, but its plan lacks. The transaction starts again with a plan that includes this.
enum TransactionMissing {
    case key(Database, Key)
    /// The files of a database. They are not open, but a command writes to the database.
    case files(Database)
    case database(String)
}

/// An attempt to run a transaction's commands, usually while the locks of all keys are held. Each ``Call`` uses the run
/// instead of the engine.
///
/// Used only on the thread that runs the transaction.
final class TransactionRun {
    private let plan: TransactionPlan
    private(set) var update: TransactionUpdate
    private var notFound: [TransactionMissing] = []
    var missing: [TransactionMissing] {
        notFound.isEmpty ? update.withoutFiles.map { .files($0) } : notFound
    }
    /// Whether a command must build a long value, which is possible only on the thread for long values. If so, nothing
    /// is applied.
    private(set) var needsLongThread = false
    /// Whether a script takes so long that it must start again without locks. If so, nothing is applied.
    private(set) var needsScriptThread = false
    /// Whether entries have changed since a script has read them without locks. If so, nothing is applied.
    private(set) var isOutdated = false
    /// Whether reading takes so long that the commands must start again on another thread, or without locks. If so,
    /// nothing is applied.
    private(set) var takesLong = false
    private let readCostMax: Int
    private var readCost = 0
    /// The lines for clients that use MONITOR. They are sent only if the attempt is applied.
    var shown: [[UInt8]] = []
    /// The maximum length of a record that a script may read while it runs without locks, in bytes. Nil if the script
    /// runs with locks, because it can then read only the keys of the plan.
    private let loadedBytesMax: Int?
    /// The positions of keys that were read while a script ran without locks, by the index of their part.
    private var loaded: [Int: [Key: Int]] = [:]
    private let parts: [ObjectIdentifier: (plan: Int, engine: Int)]

    /// - Parameter loadedBytesMax: the maximum length of a record that may be read, if the transaction runs without
    ///   locks; otherwise nil. `readCostMax`: the maximum of all ``note(cost:)``.
    init(_ plan: TransactionPlan, _ update: TransactionUpdate, loadedBytesMax: Int? = nil, readCostMax: Int = .max) {
        self.plan = plan
        self.readCostMax = readCostMax
        self.update = update
        self.loadedBytesMax = loadedBytesMax
        var parts: [ObjectIdentifier: (plan: Int, engine: Int)] = [:]
        for (index, part) in plan.parts.enumerated() {
            let engine = update.parts.firstIndex { $0.database === part.database }
            parts[ObjectIdentifier(part.database)] = (index, engine ?? 0)
        }
        self.parts = parts
    }

    func leaveToLongThread() { needsLongThread = true }
    func leaveToScriptThread() { needsScriptThread = true }
    func outdate() { isOutdated = true }

    /// Notes how long a command takes: as long as copying this many bytes.
    /// - Returns: whether the attempt may continue.
    func note(cost: Int) -> Bool {
        readCost = readCost.addingReportingOverflow(cost).overflow ? .max : readCost + cost
        takesLong = readCost > readCostMax
        return !takesLong
    }

    /// The keys that were read while a script ran without locks.
    var loadedKeys: [TransactionMissing] {
        loaded.flatMap { part, keys in keys.keys.map { .key(update.parts[part].database, $0) } }
    }

    /// Whether the attempt has failed for a reason other than ``missing``.
    var mustLeave: Bool { needsLongThread || needsScriptThread || isOutdated || takesLong }

    /// Whether the commands must run again, so that this attempt is not applied.
    var mustBeginAgain: Bool { mustLeave || !missing.isEmpty }

    /// Returns the positions of keys. If the plan does not contain them all, returns nil and records the missing keys.
    private func find(_ keys: [Key], _ database: Database) throws(CommandError) -> (part: Int, positions: [Int])? {
        let part = parts[ObjectIdentifier(database)]
        var positions: [Int] = []
        positions.reserveCapacity(keys.count)
        for key in keys {
            if let part, let position = plan.parts[part.plan].positions[key] {
                positions.append(position)
            } else if let part, let loadedBytesMax {
                positions.append(try load(key, part.engine, loadedBytesMax))
            } else {
                notFound.append(.key(database, key))
            }
        }
        guard let part, positions.count == keys.count else { return nil }
        return (part.engine, positions)
    }

    private func load(_ key: Key, _ part: Int, _ bytesMax: Int) throws(CommandError) -> Int {
        if let position = loaded[part]?[key] { return position }
        let position = try CommandError.wrap(update.load(part: part, key, bytesMax: bytesMax))
        loaded[part, default: [:]][key] = position
        return position
    }

    private static let isMissing = CommandError("ERR a key was not known before the transaction began")

    func update(
        _ database: Database, _ keys: [Key], _ body: (inout Update) throws(LarderError) -> Void
    ) throws(CommandError) {
        guard let (part, positions) = try find(keys, database) else { throw Self.isMissing }
        try CommandError.wrap(update.update(part: part, positions: positions, body))
    }

    /// Changes entries of two databases.
    func update(
        _ database: Database, _ keys: [Key], and other: Database, _ otherKeys: [Key],
        _ body: (inout Update, inout Update) throws(LarderError) -> Void
    ) throws(CommandError) {
        let own = try find(keys, database)
        let others = try find(otherKeys, other)
        guard let own, let others else { throw Self.isMissing }
        try CommandError.wrap(
            update.update(part: own.part, positions: own.positions, and: others.part, others.positions, body))
    }

    /// Returns the fresh entry of a key; nil if there is none.
    func current(_ database: Database, _ key: Key) throws(CommandError) -> Record? {
        guard let (part, positions) = try find([key], database), let position = positions.first else {
            throw Self.isMissing
        }
        return update.current(part: part, position: position)
    }

    /// The freshness rules of a database; nil if the transaction does not use the database.
    func rules(_ database: Database) -> FreshnessRules? {
        parts[ObjectIdentifier(database)].map { update.rules(part: $0.engine) }
    }

    /// Returns the database with a name, as SELECT would.
    func database(_ name: String) throws(CommandError) -> Database {
        switch plan.databases[name] {
        case .success(let database): return database
        case .failure(let error): throw CommandError(error)
        case nil:
            notFound.append(.database(name))
            throw Self.isMissing
        }
    }
}
