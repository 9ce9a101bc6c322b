@testable import LarderEngine

/// Comparisons of the engine with the model.
extension ModelRun {
    func check(_ seen: String?, _ expected: Model.Expectation, _ what: String) throws {
        let isRight =
            switch expected {
            case .absent: seen == nil
            case .present(let value): seen == value
            case .unsure(let value): seen == nil || seen == value
            }
        guard !isRight else { return }
        throw fail("\(what): \(seen.map { String($0.prefix(12)) } ?? "nothing") instead of \(expected)")
    }

    func check(_ contents: [String: String], _ model: Model, _ now: Int64, _ what: String) throws {
        for key in Set(contents.keys).union(model.entries.keys) {
            try check(contents[key], model.expectation(key, now), "\(key) in \(what)")
        }
    }

    func read(_ name: String) throws {
        let database = try database(name)
        let key = key()
        note("get \(name) \(key)")
        guard let model = models[name] else { return }
        try check(try database.value(key), model.expectation(key, try now()), "get of \(key) in \(name)")
    }

    /// Compares all entries of a database, by each kind of enumeration.
    func compare(_ name: String) throws {
        let database = try database(name)
        note("compare \(name)")
        // An enumeration writes the entries in memory to LevelDB first, and removes expired ones.
        noteSweep()
        guard let model = models[name] else { return }
        let now = try now()
        let contents = try database.contents()
        try check(contents, model, now, name)
        guard database.policy == model.policy else { throw fail("policy \(database.policy), not \(model.policy)") }
        guard try database.count(includingExpired: false) == contents.count else { throw fail("wrong count") }
        let all = try database.count(includingExpired: true)
        let least = model.entries.values.count { !$0.mayBeSwept }
        let most = model.entries.count + model.purged.count { model.entries[$0] == nil }
        guard (least...most).contains(all) else {
            throw fail("\(all) entries are stored, not \(least) to \(most)")
        }
        if isIndexed {
            if random.oneIn(2) { try database.finishIndexes() }
            // After a salvage, or without a checkpoint since the files were made, the index may have to be built first.
            guard try database.keys(byLengthIn: "length").map({ $0 == Set(contents.keys) }) ?? true else {
                throw fail("the index of \(name) finds other entries")
            }
        }
        try compareOrders(database, contents.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    private func compareOrders(_ database: Database, _ keys: [String]) throws {
        let prefix = ["", "p", "p:", "q:3", "z"].randomElement(using: &random) ?? ""
        let start = random.oneIn(2) ? key() : nil
        for isBackward in [false, true] {
            let options = EnumerationOptions(
                prefix: Array(prefix.utf8), start: start.map { Array($0.utf8) }, backward: isBackward)
            let expected = keys.filter { key in
                guard key.hasPrefix(prefix) else { return false }
                guard let start, start != key else { return true }
                return isBackward
                    ? key.utf8.lexicographicallyPrecedes(start.utf8) : start.utf8.lexicographicallyPrecedes(key.utf8)
            }
            let seen = try database.cursor(options)?.keys() ?? []
            guard seen == (isBackward ? expected.reversed() : expected) else {
                throw fail("prefix '\(prefix)', start \(start ?? "none"), backward \(isBackward): \(seen)")
            }
        }
    }

    func checkAll() throws {
        for name in models.keys.sorted() { try compare(name) }
        let names = try larder.engine().databases.map(\.name)
        guard names == models.keys.sorted() else { throw fail("databases \(names), not \(models.keys.sorted())") }
    }

    /// Checks that each record in LevelDB that can expire has its index key, unless the database is configured
    /// otherwise.
    func checkIndex() throws {
        note("check the index")
        for name in models.keys.sorted() {
            let database = try database(name)
            noteSweep()
            _ = try database.flushedStore()
            let state = database.durableState
            guard let store = state.store, !state.isUnindexed else { continue }
            let entries = try store.rawEntries()
            let index = Set(entries.map(\.key).filter { [KeyKind.ownDeadline, KeyKind.governed].contains($0[0]) })
            for (stored, value) in entries where stored[0] == KeyKind.record {
                let (key, header) = (Key(stored: stored), try Record(parsing: value, nil).header)
                let isIndexed =
                    switch header.rule {
                    case .ownNever: true
                    case .own:
                        ExpiryIndex.key(for: key, header, policy: state.rules.policy).map(index.contains) ?? true
                    case .governed:
                        !ExpiryIndex.indexes(state.rules.policy)
                            || index.contains { bytes in
                                let parsed = bytes.withUnsafeBytes { ExpiryIndex.parse($0) }
                                return bytes[0] == KeyKind.governed && parsed?.key == key
                                    && (parsed?.bucket ?? 0) >= header.storedAt
                            }
                    }
                guard isIndexed else { throw fail("\(key) in \(name) has no index key, \(header)") }
            }
        }
    }

    /// Checks that a check of the files reports no problems.
    func checkFiles(_ larder: TestLarder, _ when: String) throws {
        let problems = try larder.check().problems
        guard problems.isEmpty else { throw fail("the check \(when) says \(problems.map(\.text))") }
    }

    /// Checks that the sweep has left only entries that never expire, long after all deadlines.
    func checkThatNothingIsLeft() throws {
        for name in models.keys.sorted() { try database(name).setPolicy(.highest) }
        for _ in 0..<2 {
            larder.time.advance(milliseconds: 5_000_000_000)
            try larder.maintain()
        }
        for name in models.keys.sorted() {
            let database = try database(name)
            guard let model = models[name] else { continue }
            let left = model.entries.filter { entry in
                if case .own(let deadline) = entry.value.rule { return deadline == .max }
                return entry.value.rule == .ownNever
            }
            let raw = try database.rawKeys()
            let records = raw.filter { $0[0] == KeyKind.record }.map { String(decoding: $0.dropFirst(), as: UTF8.self) }
            let least = Set(left.filter { !$0.value.mayBeSwept }.keys)
            guard Set(records).isSuperset(of: least), Set(records).isSubset(of: Set(left.keys)) else {
                throw fail("the sweep left \(records) in \(name), not \(left.keys.sorted())")
            }
            // The sweep removes all index keys that are due, also those of overwritten entries.
            let now = try now()
            let index = raw.filter { [KeyKind.ownDeadline, KeyKind.governed].contains($0[0]) }
            let due = index.filter { key in key.withUnsafeBytes { ExpiryIndex.parse($0)?.bucket ?? 0 } <= now }
            guard due.isEmpty else { throw fail("\(due.count) index keys are left in \(name)") }
        }
    }
}
