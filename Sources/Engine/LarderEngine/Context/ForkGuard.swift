import LarderPlatform
import Synchronization

/// Detects whether this process was forked after a larder was opened. The child process must not use the engine: it has
/// none of the engine's threads, and another thread may have been changing LevelDB's state during the fork.
enum ForkGuard {
    private static let forked = Atomic<Bool>(false)

    private static let installed: Void = {
        _ = pthread_atfork(nil, nil, { ForkGuard.forked.store(true, ordering: .relaxed) })
    }()

    static func install() { installed }

    /// Whether this process was forked after ``install()``. One relaxed atomic load.
    static var isForked: Bool { forked.load(ordering: .relaxed) }

    static func check(_ operation: String) throws(LarderError) {
        guard isForked else { return }
        throw LarderError(
            .forked,
            "this process was forked after the larder was opened; open a larder in the child after exec, "
                + "or use larderd through LarderClient", operation: operation)
    }
}
