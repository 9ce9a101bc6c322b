import LarderCommandCatalog
import LarderEngine

/// Which commands of a connection may use the fast path, and on which database. The path itself checks neither rights
/// nor the modes of the connection. A value type, owned by its session. It has no references to objects, so that the
/// compiler can prove that accesses do not overlap, and omits checks at run time.
struct FastPathState {
    /// The client and the command that are recorded with each change by SET. Created only once.
    let setOrigin: WriteOrigin
    /// The selected database, without reference counting: otherwise all event loops would write to the same counter.
    /// Valid until another database is selected.
    var database: Unmanaged<Database>
    /// Whether the fast path may be used at all. Tests switch it off to compare the results.
    var isAllowed: Bool
    /// Whether all frequent commands may use the fast path.
    private(set) var takesAll = false
    /// Whether consecutive GETs may use the fast path. The user need not have the right to write.
    private(set) var takesGets = false
    /// Whether consecutive GETs may use the fast path of a database with an origin.
    private(set) var takesOriginGets = false

    init(client: Int64, _ database: Database, isAllowed: Bool) {
        setOrigin = WriteOrigin(tag: WriteTag.set.rawValue, client: client)
        self.database = Unmanaged.passUnretained(database)
        self.isAllowed = isAllowed
    }

    /// Whether consecutive GETs may use the fast path on this thread.
    @inline(__always)
    func mayRunGets(isOnLoop: Bool) -> Bool { takesGets || takesOriginGets && isOnLoop }

    /// - Parameters:
    ///   - isPlain: whether no mode of the connection affects how frequent commands run.
    ///   - level: the commands that the user's rights allow: with `write` all of the fast path, with `read` only GET,
    ///     with nil none.
    ///   - checksOrigin: whether commands must be checked for an origin before they run.
    mutating func update(isPlain: Bool, _ level: AccessLevel?, checksOrigin: Bool, hasOrigin: Bool) {
        let mayRead = isPlain && level != nil
        takesGets = mayRead && !checksOrigin
        takesOriginGets = mayRead && hasOrigin
        takesAll = takesGets && level == .write
    }
}
