import LarderPlatform

/// An object that owns a snapshot or a cursor of LevelDB. LevelDB must not be closed before all snapshots and cursors
/// are released, so the store keeps track of these objects.
protocol StoreChild: AnyObject, Sendable {
    /// Releases the LevelDB object. Idempotent. Called with the store's gate held, so that LevelDB is not closed
    /// meanwhile.
    func invalidate()
    /// Whether LevelDB has to keep removed and overwritten records while this object exists.
    var pinsRecords: Bool { get }
}

extension StoreChild {
    var pinsRecords: Bool { false }
}

/// The snapshots and cursors of a store. Thread-safe.
final class StoreChildren: Sendable {
    private let children = Locked<[ObjectIdentifier: any StoreChild]>([:])

    var isEmpty: Bool { children.withLock { $0.isEmpty } }
    /// Whether one of the children keeps LevelDB from freeing the space of removed records.
    var pinRecords: Bool { children.withLock { $0.values.contains(where: \.pinsRecords) } }

    func add(_ child: any StoreChild) { children.withLock { $0[ObjectIdentifier(child)] = child } }
    func remove(_ child: any StoreChild) { children.withLock { $0[ObjectIdentifier(child)] = nil } }

    /// Invalidates and removes all children. Called while no call to the store's LevelDB is running in any thread.
    func invalidateAll() {
        let all = children.withLock { exchange(&$0, with: [:]) }
        for child in all.values { child.invalidate() }
    }
}
