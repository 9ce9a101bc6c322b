import LarderPlatform

/// A queue of purged, deleted or replaced stores and files. A thread that may block closes and removes them by calling
/// ``clear(report:)``.
///
/// Thread-safe.
final class DisposalQueue: Sendable {
    private struct Item {
        let path: String
        /// Closes the files; nil if they are not open.
        let close: (@Sendable () -> Void)?
        var isReported = false
    }

    private let items = Locked<[Item]>([])

    /// Adds open files that are to be closed and removed.
    func add(_ path: String, closing close: @escaping @Sendable () -> Void) {
        items.withLock { $0.append(Item(path: path, close: close)) }
    }

    /// Removes a file or directory. If that fails, adds it to the queue to retry later.
    func remove(_ path: String) {
        do throws(FileError) {
            try FileSystem.removeTree(path)
        } catch {
            items.withLock { $0.append(Item(path: path, close: nil)) }
        }
    }

    /// Whether anything is waiting.
    var hasWork: Bool { items.withLock { !$0.isEmpty } }

    /// Closes and removes the queued items. The next call retries those that failed. May block while LevelDB compacts.
    func clear(report: (CacheEvent.Level, String) -> Void) {
        let all = items.withLock { exchange(&$0, with: []) }
        for var item in all {
            item.close?()
            do throws(FileError) {
                try FileSystem.removeTree(item.path)
            } catch {
                // If a file was created meanwhile, the next call removes it.
                if error.number != ENOTEMPTY {
                    if !item.isReported { report(.warning, "could not remove \(item.path), will retry: \(error)") }
                    item.isReported = true
                }
                items.withLock { [item] in $0.append(item) }
            }
        }
    }
}
