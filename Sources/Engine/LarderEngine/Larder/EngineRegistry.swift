import LarderPlatform

/// The open larders of this process. Opening a larder twice returns the same engine.
///
/// Thread-safe. `@unchecked Sendable`: `lock` guards the variables.
final class EngineRegistry: @unchecked Sendable {
    static let shared = EngineRegistry()

    private struct Entry {
        weak var engine: Engine?
    }

    private let lock = Lock()
    private let changed = Condition()
    /// The open larders, by path. An entry without an engine belongs to a larder that is still shutting down.
    private var entries: [String: Entry] = [:]
    private var opening: Set<String> = []

    /// Returns the open engine of a directory, or calls `make` to open it. Waits while another thread opens the larder
    /// or shuts it down.
    func open(_ path: String, make: (String) throws(LarderError) -> Engine) throws(LarderError) -> Engine {
        lock.lock()
        while true {
            if let engine = entries[path]?.engine, engine.isUsable {
                lock.unlock()
                return engine
            }
            guard entries[path] != nil || opening.contains(path) else { break }
            changed.wait(lock)
        }
        opening.insert(path)
        lock.unlock()
        defer {
            lock.withLock {
                opening.remove(path)
                changed.broadcast()
            }
        }
        let engine = try make(path)
        lock.withLock { entries[path] = Entry(engine: engine) }
        return engine
    }

    func closed(_ path: String) {
        lock.withLock {
            entries[path] = nil
            changed.broadcast()
        }
    }
}
