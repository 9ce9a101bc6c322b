import LarderPlatform

/// Collects items from any thread, in the order of arrival.
///
/// Thread-safe. `@unchecked Sendable`: the list is guarded by `lock`.
package final class Recorder<Item>: @unchecked Sendable {
    private let lock = Lock()
    private var items: [Item] = []

    package init() {}

    package func add(_ item: Item) { lock.withLock { items.append(item) } }
    package func removeAll() { lock.withLock { items = [] } }

    package var all: [Item] { lock.withLock { items } }
    package var count: Int { lock.withLock { items.count } }
    package var isEmpty: Bool { count == 0 }
}
