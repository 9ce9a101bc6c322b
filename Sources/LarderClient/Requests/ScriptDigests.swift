import LarderPlatform

/// The SHA-1 of scripts, by which servers know them: as a server has told them. They are the same for all servers.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class ScriptDigests: @unchecked Sendable {
    static let shared = ScriptDigests()

    /// A program has few scripts, unless it writes arguments into their text.
    private static let most = 1_000

    private let lock = Lock()
    private var digests: [Script: String] = [:]

    func digest(of script: Script) -> String? { lock.withLock { digests[script] } }

    func note(_ digest: String, of script: Script) {
        lock.withLock {
            if digests.count >= Self.most { digests.removeAll() }
            digests[script] = digest
        }
    }
}
