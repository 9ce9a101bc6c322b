import Threading

/// What was purged, deleted or replaced, waiting to be closed and removed by a thread that may block.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the list is read and written with the lock held.
final class Graveyard: @unchecked Sendable {
    private struct Grave {
        let store: EpochStore?
        let path: String
        var isReported = false
    }

    private let lock = Lock()
    private var graves: [Grave] = []

    /// Takes a store, to be closed, and its files.
    func bury(_ store: EpochStore) {
        lock.withLock { graves.append(Grave(store: store, path: store.path)) }
    }

    /// Removes files now, or later if that does not work out.
    func remove(_ path: String) {
        do throws(FileError) {
            try FileSystem.removeTree(path)
        } catch {
            lock.withLock { graves.append(Grave(store: nil, path: path)) }
        }
    }

    /// Closes what was buried and removes its files; what cannot be removed is tried again the next time. May block for
    /// as long as LevelDB compacts.
    func clear(report: (EngineEvent.Level, String) -> Void) {
        let all = lock.withLock {
            defer { graves = [] }
            return graves
        }
        for var grave in all {
            grave.store?.close()
            do throws(FileError) {
                try FileSystem.removeTree(grave.path)
            } catch {
                if !grave.isReported {
                    report(.warning, "could not remove \(grave.path), and tries again: \(error)")
                }
                grave.isReported = true
                lock.withLock { graves.append(grave) }
            }
        }
    }
}
