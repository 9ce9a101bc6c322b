import LarderPlatform
import Synchronization

/// Space on the file system that is reserved for writes on a full disk: removals, and LevelDB's writes that free space.
/// It is a preallocated file, which is removed when the space is needed, and recreated when there is space again.
///
/// On file systems that compress or copy on write, a preallocated file reserves no space.
///
/// Thread-safe. `@unchecked Sendable`: `isHeld` is guarded by `lock`.
final class ReserveFile: @unchecked Sendable {
    static let name = "RESERVE"

    private let path: String
    private let lock = Lock()
    private var isHeld = false

    init(directory: String) { path = directory + "/" + Self.name }

    /// Creates the file, unless this process has created it already. Replaces the file of an earlier process.
    /// - Returns: whether the file exists.
    @discardableResult
    func hold(bytes: Int) -> Bool {
        lock.withLock {
            if !isHeld { isHeld = (try? FileSystem.allocate(path, bytes: bytes)) != nil }
            return isHeld
        }
    }

    /// Whether this process has created the file and not removed it.
    var isThere: Bool { lock.withLock { isHeld } }

    /// Removes the file, even if an earlier process created it.
    /// - Returns: whether the file existed.
    @discardableResult
    func giveUp() -> Bool {
        lock.withLock {
            isHeld = false
            return unlink(path) == 0
        }
    }
}
