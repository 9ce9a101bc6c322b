import LarderPlatform

/// A queue of purged, deleted or replaced stores and files. A thread that may block closes and removes them by calling
/// ``clear(report:)``.
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

    /// Adds a store whose files are to be closed and removed.
    func add(_ store: EpochStore) {
        lock.withLock { items.append(Item(store: store, path: store.path)) }
    }

    /// Removes a file or directory. If that fails, adds it to the queue to retry later.
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
