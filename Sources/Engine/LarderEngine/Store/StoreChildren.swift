import Synchronization

/// An object that uses a LevelDB object: a snapshot or a cursor. LevelDB can be neither closed nor reopened before all
/// of these are released, so the store keeps track of them.
protocol StoreChild: AnyObject, Sendable {
    /// Releases the LevelDB object. Called while no call to LevelDB is running anywhere in the store. Idempotent.
    func invalidate()
    /// Whether LevelDB has to keep removed and overwritten records while this object exists.
    var pinsRecords: Bool { get }
}

extension StoreChild {
    var pinsRecords: Bool { false }
}

/// The snapshots and cursors of a store. Thread-safe.
final class StoreChildren: Sendable {
    private let children = Mutex<[ObjectIdentifier: any StoreChild]>([:])

    var isEmpty: Bool { children.withLock { $0.isEmpty } }
    /// Whether one of them keeps LevelDB from freeing the space of removed records.
    var pinRecords: Bool { children.withLock { $0.values.contains(where: \.pinsRecords) } }

    func add(_ child: any StoreChild) { children.withLock { $0[ObjectIdentifier(child)] = child } }
    func remove(_ child: any StoreChild) { children.withLock { $0[ObjectIdentifier(child)] = nil } }

    /// Invalidates and removes all of them. Called while no call to LevelDB is running anywhere in the store.
    func invalidateAll() {
        let all = children.withLock { children in
            defer { children = [:] }
            return children
        }
        for child in all.values { child.invalidate() }
    }
}
