import LarderPlatform

/// The SHA-1 digests by which servers identify scripts, as returned by a server. They are the same for all servers.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class ScriptDigests: @unchecked Sendable {
    static let shared = ScriptDigests()

    /// The maximum number of digests. If there are more, all are dropped. A program has fewer scripts, unless it writes
    /// arguments into their text.
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
