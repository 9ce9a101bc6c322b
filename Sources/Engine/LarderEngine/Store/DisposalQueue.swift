import LarderPlatform

/// Purged, deleted or replaced stores and files that wait to be closed and removed by a thread that may block.
///
/// Thread-safe. `@unchecked Sendable`: the list is guarded by `lock`.
final class DisposalQueue: @unchecked Sendable {
    private struct Item {
        let store: EpochStore?
        let path: String
        var isReported = false
    }

    private let lock = Lock()
    private var items: [Item] = []

    /// Adds a store, to be closed and removed.
    func add(_ store: EpochStore) {
        lock.withLock { items.append(Item(store: store, path: store.path)) }
    }

    /// Removes files now, or later if that fails.
    func remove(_ path: String) {
        do throws(FileError) {
            try FileSystem.removeTree(path)
        } catch {
            lock.withLock { items.append(Item(store: nil, path: path)) }
        }
    }

    /// Whether anything is waiting.
    var hasWork: Bool { lock.withLock { !items.isEmpty } }

    /// Closes waiting stores and removes their files. Removals that fail are retried by the next call. May block for as
    /// long as LevelDB compacts.
    func clear(report: (EngineEvent.Level, String) -> Void) {
        let all = lock.withLock {
            defer { items = [] }
            return items
        }
        for var item in all {
            item.store?.close()
            do throws(FileError) {
                try FileSystem.removeTree(item.path)
            } catch {
                if !item.isReported {
                    report(.warning, "could not remove \(item.path), will retry: \(error)")
                }
                item.isReported = true
                lock.withLock { items.append(item) }
            }
        }
    }
}
