/// The bytes of entries that a checkpoint may add to databases. Unlimited without a disk limit, or if enough space
/// could be freed. Otherwise entries that do not fit are evicted before they reach LevelDB. A value.
struct EvictionRoom {
    private var larder = Int.max
    private var databases: [ObjectIdentifier: Int] = [:]

    /// The bytes that are left for a database.
    func left(_ database: Database) -> Int {
        if DatabaseName.isKept(database.name) { return .max }
        return min(larder, databases[ObjectIdentifier(database)] ?? .max)
    }

    mutating func limit(_ scope: Database?, to bytes: Int) {
        if let scope { databases[ObjectIdentifier(scope)] = bytes } else { larder = bytes }
    }

    /// - Parameter left: the result of ``left(_:)``, minus the bytes added.
    mutating func note(_ database: Database, left: Int) {
        let taken = self.left(database) - left
        if larder != .max { larder -= taken }
        if let own = databases[ObjectIdentifier(database)] { databases[ObjectIdentifier(database)] = own - taken }
    }
}
