import LarderTestSupport

@testable import LarderEngine

/// A random run of an engine. It waits for each commit unit, and records all entries after each unit.
///
/// After a crash, all databases must be in the state after the same unit. Changes of a whole database (a purge, a
/// policy, its creation) do not use the journal. So no database can go back to a state before its last such change.
final class RecordedRun {
    typealias Entries = [String: Model.Entry]

    static let names = ["a", "b", "c"]
    let larder: TestLarder
    var random: SeededGenerator
    /// The number of commit units so far.
    private(set) var unit = 0
    /// The entries of all databases after each unit. The first element is the state of the empty larder.
    private(set) var states: [[String: Entries]] = [[:]]
    /// The policy and `deadBefore` of each database at the end of the run.
    private(set) var models: [String: Model] = [:]
    /// The number of the unit that last changed each database as a whole.
    private var wholeChanges: [String: Int] = [:]
    private var counter = 0
    /// The number of refused writes.
    private(set) var refused = 0

    init(_ random: SeededGenerator, _ configure: (inout EngineOptions) -> Void) throws {
        self.random = random
        larder = try TestLarder(configure)
    }

    func run(steps: Int) throws {
        for _ in 0..<steps {
            let name = Self.names.randomElement(using: &random) ?? "a"
            switch Int.random(in: 0..<42, using: &random) {
            case 0..<16: try put(name, count: 1)
            case 16..<24: try put(name, count: 4)
            case 24..<30: try remove(name)
            case 30..<33: larder.time.advance(milliseconds: Int64.random(in: 0...20_000, using: &random))
            case 33..<34: try purge(name)
            case 34..<35: try changePolicy(name)
            case 35..<36: try deleteAndCreate(name)
            case 36..<37: _ = try? larder.engine().database(name).flush()
            case 37..<38: _ = try larder.engine().maintain()
            case 38..<40: try? larder.database(name).checkpointer.rewrite()
            default: try checkReads(name)
            }
        }
    }

    // MARK: Steps

    private func database(_ name: String) throws -> Database {
        let database = try larder.database(name)
        if models[name] == nil {
            models[name] = Model(policy: .lowest)
            wholeChanges[name] = unit
        }
        return database
    }

    private func key() -> String { "k\(Int.random(in: 0..<12, using: &random))" }

    /// Runs a write that may be refused.
    /// - Returns: whether the write was acknowledged.
    private func attempt(_ body: () throws -> Void) throws -> Bool {
        do {
            try body()
            return true
        } catch let error as LarderError where [.commitFailed, .io, .writesSuspended].contains(error.code) {
            refused += 1
            return false
        }
    }

    private func record(_ name: String) {
        unit += 1
        var state = states[states.count - 1]
        state[name] = models[name]?.entries
        states.append(state)
    }

    private func put(_ name: String, count: Int) throws {
        let database = try database(name)
        let now = try larder.engine().now()
        counter += 1
        let keys = Set((0..<count).map { _ in key() }).sorted()
        let value = "\(counter)" + String(repeating: "x", count: random.oneIn(10) ? 900 : counter % 40)
        let rules: [DeadlineRule] = [.governed, .governed, .ownNever, .own(now + 15_000)]
        let rule = rules.randomElement(using: &random) ?? .governed
        let durability = Durability.allCases.randomElement(using: &random)
        let isAhead = keys.count == 1 && random.oneIn(3)
        let isDone = try attempt {
            if isAhead {
                try database.putAhead(keys[0], value, rule: rule, durability: durability)
                return
            }
            try database.commit(keys.map { Key($0) }, loading: .none, durability: durability) { update in
                for index in keys.indices {
                    Array(value.utf8).withUnsafeBytes { update.put(index, payload: $0, rule: rule) }
                }
            }
        }
        guard isDone else { return }
        for key in keys { models[name]?.entries[key] = Model.Entry(value: value, storedAt: now, rule: rule) }
        record(name)
    }

    private func remove(_ name: String) throws {
        let database = try database(name)
        let key = key()
        guard try attempt({ try database.remove(key) }) else { return }
        models[name]?.entries[key] = nil
        record(name)
    }

    private func purge(_ name: String) throws {
        let database = try database(name)
        guard try attempt({ _ = try database.purge(.all(counting: random.oneIn(2))) }) else { return }
        models[name]?.entries = [:]
        models[name]?.deadBefore = 0
        record(name)
        wholeChanges[name] = unit
    }

    private func changePolicy(_ name: String) throws {
        let database = try database(name)
        let policy = [UpdatePolicy.highest, .high, .lowest, .never].randomElement(using: &random) ?? .never
        let now = try larder.engine().now()
        guard try attempt({ try database.setPolicy(policy) }) else { return }
        models[name]?.change(policy, now)
        record(name)
    }

    private func deleteAndCreate(_ name: String) throws {
        _ = try database(name)
        guard try attempt({ _ = try larder.engine().deleteDatabase(name) }) else { return }
        models[name] = nil
        record(name)
        _ = try database(name)
        wholeChanges[name] = unit
    }

    // MARK: Expected contents

    private func visible(_ entries: Entries?, _ name: String, _ now: Int64) -> [String: String] {
        guard let entries, let model = models[name] else { return [:] }
        return entries.filter { model.isFresh($0.value, now) }.mapValues(\.value)
    }

    private func checkReads(_ name: String) throws {
        let expected = visible(models[name]?.entries, name, try larder.engine().now())
        let found = try database(name).contents()
        guard found == expected else { throw mismatch("\(name) in the run", found, expected) }
        let snapshot = try database(name).snapshot().contents()
        guard snapshot == expected else { throw mismatch("a snapshot of \(name)", snapshot, expected) }
    }

    private func mismatch(_ what: String, _ found: [String: String], _ expected: [String: String]) -> ModelRun.Mismatch
    {
        ModelRun.Mismatch(description: "\(what): found \(found), expected \(expected)")
    }

    /// Returns what is wrong with a larder after a crash at the end of the run; nil if all acknowledged data is there.
    func defectOfEnd(_ crashCopy: TestLarder) throws -> String? {
        try defect(crashCopy, from: unit)
    }

    /// Returns what is wrong with a larder whose journal was truncated or damaged; nil if all databases are in the
    /// state after one and the same unit. Salvaged databases may have only a part of that state.
    /// - Parameters:
    ///   - first: the earliest possible unit.
    ///   - together: false if each database may be in the state after a different unit.
    func defect(_ crashCopy: TestLarder, from first: Int = 0, together: Bool = true) throws -> String? {
        let engine = try crashCopy.engine()
        let now = engine.now()
        var found: [String: [String: String]] = [:]
        for name in Self.names where models[name] != nil {
            found[name] = try engine.database(name).contents()
        }
        // Salvaged databases have only the entries that are in the journal.
        let salvaged = Set(found.keys.filter { name in crashCopy.setAside.contains { $0.hasSuffix("-" + name) } })
        func isState(_ number: Int, _ name: String, _ contents: [String: String]) -> Bool {
            let state = visible(states[max(number, wholeChanges[name] ?? 0)][name], name, now)
            return salvaged.contains(name) ? contents.allSatisfy { state[$0.key] == $0.value } : contents == state
        }
        let units = first...unit
        let fits =
            together
            ? units.contains { unit in found.allSatisfy { isState(unit, $0, $1) } }
            : found.allSatisfy { name, contents in units.contains { isState($0, name, contents) } }
        return fits ? nil : "no state since unit \(first) of \(unit) has \(found); at the end \(models)"
    }
}
