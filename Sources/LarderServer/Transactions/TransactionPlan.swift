import CommandCatalog
import LarderEngine
import RESP

/// Which keys of which databases the commands of a transaction touch. Made before any lock is taken.
struct TransactionPlan {
    /// What is touched in one database.
    struct Part {
        let database: Database
        /// Where each key stands, in the order in which the engine gets them.
        private(set) var positions: [Key: Int] = [:]
        private var loaded: [Key] = []
        private var blind: [Key] = []
        fileprivate var watches: [KeyWatch] = []
        fileprivate(set) var isWritten = false
        fileprivate(set) var isCreated = false

        fileprivate init(_ database: Database) { self.database = database }

        /// - Parameter isBlind: whether the command that is the first to touch the key overwrites it.
        fileprivate mutating func add(_ key: Key, isBlind: Bool) {
            guard positions[key] == nil else { return }
            positions[key] = isBlind ? -1 - blind.count : loaded.count
            if isBlind { blind.append(key) } else { loaded.append(key) }
        }

        /// The engine's view; positions are final from here on.
        fileprivate mutating func complete() -> TransactionPart {
            for (index, key) in blind.enumerated() { positions[key] = loaded.count + index }
            return TransactionPart(
                database: database, keys: loaded + blind, loadedCount: loaded.count, watches: watches)
        }

        /// Whether files must be open for writing before the commands can run.
        var needsWritableFiles: Bool { isCreated || isWritten && database.exists }
    }

    /// In the order in which the engine takes their locks.
    private(set) var parts: [Part] = []
    private(set) var engineParts: [TransactionPart] = []
    /// The databases that SELECT names, or why there is none.
    private(set) var databases: [String: Result<Database, LarderError>] = [:]

    /// - Parameters:
    ///   - commands: those that are still to run, in their order.
    ///   - database: the one that is selected before the first of them.
    ///   - loadsAll: whether it has to be known what was there before, also of what is only overwritten.
    init(
        _ commands: ArraySlice<QueuedCommand>, in database: Database, watches: [KeyWatch], more: [TransactionMissing],
        loadsAll: Bool, engine: Engine
    ) {
        // First, because these have to be looked at even where the commands only overwrite them.
        for watch in watches {
            let index = part(watch.database)
            parts[index].add(watch.key, isBlind: false)
            parts[index].watches.append(watch)
        }
        var current = database
        for command in commands {
            if case .selected = command.row.database {
                if case .success(let selected) = resolve(command.text(1), engine) { current = selected }
                continue
            }
            note(command, current, loadsAll)
            noteTarget(command, current, engine)
        }
        for missing in more {
            switch missing {
            case .key(let database, let key, let isOther):
                let index = part(database)
                parts[index].add(key, isBlind: false)
                if isOther { parts[index].isCreated = true }
            case .database(let name): _ = resolve(name, engine)
            }
        }
        engineParts = parts.indices.map { parts[$0].complete() }
    }

    private mutating func note(_ command: QueuedCommand, _ database: Database, _ loadsAll: Bool) {
        let row = command.row
        let indices = row.keyIndices(count: command.count) { command[$0] }
        guard !indices.isEmpty || row.flags.contains(.write) && !row.flags.contains(.wholeDatabase) else { return }
        let index = part(database)
        if row.flags.contains(.write) { parts[index].isWritten = true }
        if row.flags.contains(.creates) { parts[index].isCreated = true }
        let isBlind = command.overwritesBlindly && !loadsAll
        for position in indices where command[position].count <= Key.bytesMax {
            parts[index].add(Key(command[position]), isBlind: isBlind)
        }
    }

    /// The key that MOVE or COPY writes in another database, if that has files: whether it is to get some only the command
    /// knows.
    private mutating func noteTarget(_ command: QueuedCommand, _ database: Database, _ engine: Engine) {
        let place: (name: Int, key: Int)
        switch command.row.database {
        case .none, .selected: return
        case .target(let name, let key): place = (name, key)
        case .targetOption(let key):
            let option = (key + 1..<max(key + 1, command.count - 1)).last { equalsIgnoringCase(command[$0], "DB") }
            guard let option else { return }
            place = (option + 1, key)
        }
        guard command[place.key].count <= Key.bytesMax,
            case .success(let target) = resolve(command.text(place.name), engine), target !== database, target.exists
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

/// What a command of a transaction asked for and the plan did not have: the transaction starts again with it.
enum TransactionMissing {
    /// - Parameter isOther: whether it is of a database that the command writes to beside its own.
    case key(Database, Key, isOther: Bool)
    case database(String)
}

/// A transaction while its commands run, with the locks of all its keys held: what ``Call`` has in place of the engine.
///
/// Confined to the thread that runs it.
final class TransactionRun {
    private let plan: TransactionPlan
    private(set) var update: TransactionUpdate
    private(set) var missing: [TransactionMissing] = []
    /// Whether a command builds a value that is long, and may not here: nothing is applied then.
    private(set) var needsLongThread = false
    private let parts: [ObjectIdentifier: (plan: Int, engine: Int)]

    init(_ plan: TransactionPlan, _ update: TransactionUpdate) {
        self.plan = plan
        self.update = update
        var parts: [ObjectIdentifier: (plan: Int, engine: Int)] = [:]
        for (index, part) in plan.parts.enumerated() {
            let engine = update.parts.firstIndex { $0.database === part.database }
            parts[ObjectIdentifier(part.database)] = (index, engine ?? 0)
        }
        self.parts = parts
    }

    func leaveToLongThread() { needsLongThread = true }

    /// Where keys stand; nil where the plan lacks one, which is noted.
    private func find(
        _ keys: [Key], _ database: Database, isOther: Bool = false
    ) -> (part: Int, positions: [Int])? {
        let part = parts[ObjectIdentifier(database)]
        var positions: [Int] = []
        positions.reserveCapacity(keys.count)
        for key in keys {
            if let part, let position = plan.parts[part.plan].positions[key] {
                positions.append(position)
            } else {
                missing.append(.key(database, key, isOther: isOther))
            }
        }
        guard let part, positions.count == keys.count else { return nil }
        return (part.engine, positions)
    }

    private static let isMissing = CommandError("ERR a key was not known before the transaction began")

    func update(
        _ database: Database, _ keys: [Key], _ body: (inout Update) throws(LarderError) -> Void
    ) throws(CommandError) {
        guard let (part, positions) = find(keys, database) else { throw Self.isMissing }
        do throws(LarderError) {
            try update.update(part: part, positions: positions, body)
        } catch {
            throw CommandError(error)
        }
    }

    /// As ``update(_:_:_:)`` for keys of two databases.
    func update(
        _ database: Database, _ keys: [Key], and other: Database, _ otherKeys: [Key],
        _ body: (inout Update, inout Update) throws(LarderError) -> Void
    ) throws(CommandError) {
        let own = find(keys, database)
        let others = find(otherKeys, other, isOther: true)
        guard let own, let others else { throw Self.isMissing }
        do throws(LarderError) {
            try update.update(part: own.part, positions: own.positions, and: others.part, others.positions, body)
        } catch {
            throw CommandError(error)
        }
    }

    /// The fresh entry of a key.
    func current(_ database: Database, _ key: Key) throws(CommandError) -> Record? {
        guard let (part, positions) = find([key], database), let position = positions.first else {
            throw Self.isMissing
        }
        return update.current(part: part, position: position)
    }

    /// The rules by which a database's entries are fresh or not; nil for a database that is not locked.
    func rules(_ database: Database) -> FreshnessRules? {
        parts[ObjectIdentifier(database)].map { update.rules(part: $0.engine) }
    }

    /// The database of a name that SELECT gives.
    func database(_ name: String) throws(CommandError) -> Database {
        switch plan.databases[name] {
        case .success(let database): return database
        case .failure(let error): throw CommandError(error)
        case nil:
            missing.append(.database(name))
            throw Self.isMissing
        }
    }
}
