/// The observers, and the keys or prefixes that they observe. A value; the owner's lock guards it.
struct ObserverTable {
    private struct Wide {
        /// The observed database; nil for all databases.
        let database: (any DatabaseIdentity)?
        let prefix: [UInt8]
        let observer: any ChangeSubscriber
    }

    private var exact: [EntryName: [any ChangeSubscriber]] = [:]
    private var wide: [Wide] = []

    var isEmpty: Bool { exact.isEmpty && wide.isEmpty }

    /// - Parameter database: nil for all databases. Nil is only allowed with a prefix.
    mutating func add(_ observer: any ChangeSubscriber, _ keys: ObservedKeys, in database: Database?) {
        switch (keys, database) {
        case (.key(let key), let database?): exact[EntryName(database, key), default: []].append(observer)
        case (.key(let key), nil): wide.append(Wide(database: nil, prefix: key, observer: observer))
        case (.prefix(let prefix), _): wide.append(Wide(database: database, prefix: prefix, observer: observer))
        }
    }

    mutating func remove(_ observer: any ChangeSubscriber) {
        wide.removeAll { $0.observer === observer }
        for (name, observers) in exact where observers.contains(where: { $0 === observer }) {
            let rest = observers.filter { $0 !== observer }
            exact[name] = rest.isEmpty ? nil : rest
        }
    }

    /// Returns the observers of an entry.
    func observers(of name: EntryName) -> [any ChangeSubscriber] {
        var found = exact[name] ?? []
        for one in wide where one.database == nil || one.database === name.database {
            if name.key.starts(with: one.prefix) { found.append(one.observer) }
        }
        return found
    }

    /// Returns the observers of entries of a database.
    func observers(of database: any DatabaseIdentity) -> [any ChangeSubscriber] {
        wide.filter { $0.database == nil || $0.database === database }.map(\.observer)
            + exact.filter { $0.key.database === database }.flatMap(\.value)
    }
}
