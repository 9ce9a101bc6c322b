import Threading

/// Things that came from any thread, in the order in which they came.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the list is read and written with the lock held.
final class Told<Item: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private var items: [Item] = []

    func add(_ item: Item) { lock.withLock { items.append(item) } }
    var all: [Item] { lock.withLock { items } }
}
