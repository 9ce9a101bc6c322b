import LarderCommandCatalog
import LarderEngine

/// The commands that a connection may run without checks, because its rights and modes were checked before. Contains
/// the database on which these commands run. A value type, owned by its session. It has no references to objects, so
/// that the compiler can prove that accesses do not overlap, and omits checks at run time.
struct Prechecks {
    /// The client and the command that are recorded with each change by SET. Created only once.
    let setOrigin: WriteOrigin
    /// The selected database, without reference counting: otherwise all event loops would write to the same counter.
    /// Valid until another database is selected.
    var database: Unmanaged<Database>
    /// Whether checks may be skipped at all. Tests switch this off to compare replies with and without checks.
    var areUsed: Bool
    /// Whether all commands with keys may run without checks.
    private(set) var allowsAll = false
    /// Whether GETs may run without checks. The user need not have the right to write.
    private(set) var allowsGets = false
    /// Whether GETs of a database with an origin may run without checks.
    private(set) var allowsOriginGets = false

    init(client: Int64, _ database: Database, areUsed: Bool) {
        setOrigin = WriteOrigin(tag: WriteTag.set.rawValue, client: client)
        self.database = Unmanaged.passUnretained(database)
        self.areUsed = areUsed
    }

    /// Whether any command may run without checks on this thread.
    /// - Parameter isNew: false if the current command has already waited, for example for an origin.
    @inline(__always)
    func mayRunInMemory(isNew: Bool, isOnLoop: Bool) -> Bool { allowsGets || allowsOriginGets && isNew && isOnLoop }

    /// - Parameters:
    ///   - isPlain: whether no mode of the connection affects how commands with keys run.
    ///   - level: which commands the user's rights allow: all (`write`), only GET (`read`), or none (nil).
    ///   - checksOrigin: whether commands must be checked for an origin before they run.
    mutating func update(isPlain: Bool, _ level: AccessLevel?, checksOrigin: Bool, hasOrigin: Bool) {
        let mayRead = isPlain && level != nil
        allowsGets = mayRead && !checksOrigin
        allowsOriginGets = mayRead && hasOrigin
        allowsAll = allowsGets && level == .write
    }
}
