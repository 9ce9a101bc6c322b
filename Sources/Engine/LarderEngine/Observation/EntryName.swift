/// The name of an entry in a larder: a database and a key.
struct EntryName: Hashable, Sendable {
    let database: Database
    let key: [UInt8]

    init(_ database: Database, _ key: [UInt8]) {
        self.database = database
        self.key = key
    }

    static func == (left: EntryName, right: EntryName) -> Bool {
        left.database === right.database && left.key == right.key
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(database))
        hasher.combine(key)
    }
}
