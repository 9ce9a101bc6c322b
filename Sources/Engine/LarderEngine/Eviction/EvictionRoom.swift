/// The bytes of entries that a checkpoint may still add to each database. Unlimited if there is no disk limit, or if
/// the eviction has freed enough space. Otherwise the checkpoint evicts the entries that do not fit instead of writing
/// them to LevelDB. A value.
struct EvictionRoom {
    private var larder = Int.max
    private var databases: [ObjectIdentifier: Int] = [:]

    /// Returns the bytes that a checkpoint may still add to a database.
    func left(_ database: Database) -> Int {
        if DatabaseName.isKept(database.name) { return .max }
        return min(larder, databases[ObjectIdentifier(database)] ?? .max)
    }

    mutating func limit(_ scope: Database?, to bytes: Int) {
        if let scope { databases[ObjectIdentifier(scope)] = bytes } else { larder = bytes }
    }

    /// - Parameter left: the result of ``left(_:)``, minus the bytes that the checkpoint has added to the database
    ///   since.
    mutating func note(_ database: Database, left: Int) {
        let taken = self.left(database) - left
        if larder != .max { larder -= taken }
        if let own = databases[ObjectIdentifier(database)] { databases[ObjectIdentifier(database)] = own - taken }
    }
}
