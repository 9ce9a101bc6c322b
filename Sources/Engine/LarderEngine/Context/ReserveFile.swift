import LarderPlatform
import Synchronization

/// Room on the file system that is held for what must be written when that is full: removals, and what LevelDB writes
/// before it gives space back. A file without content, which is removed when it is needed and made again when there is
/// room.
///
/// It is worth what the file system's preallocation is worth: nothing on one that compresses or copies on write.
///
/// Thread-safe. `@unchecked Sendable`: `isHeld` is guarded by `lock`.
final class ReserveFile: @unchecked Sendable {
    static let name = "RESERVE"

    private let path: String
    private let lock = Lock()
    private var isHeld = false

    init(directory: String) { path = directory + "/" + Self.name }

    /// Makes the file if this process has not, and replaces that of another one.
    /// - Returns: whether it is there.
    @discardableResult
    func hold(bytes: Int) -> Bool {
        lock.withLock {
            if !isHeld { isHeld = (try? FileSystem.allocate(path, bytes: bytes)) != nil }
            return isHeld
        }
    }

    /// Whether this process holds it.
    var isThere: Bool { lock.withLock { isHeld } }

    /// Removes the file, also that of an earlier process.
    /// - Returns: whether there was one.
    @discardableResult
    func giveUp() -> Bool {
        lock.withLock {
            isHeld = false
            return unlink(path) == 0
        }
    }
}
