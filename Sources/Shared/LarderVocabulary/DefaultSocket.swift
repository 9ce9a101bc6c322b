import LarderPlatform

/// The default path of a daemon's socket. larderd listens at the first of these, and its clients connect to it:
///
/// 1. the environment variable `LARDER_SOCKET`, if it is set and not empty;
/// 2. for root `/run/larder/larder.sock`;
/// 3. `$XDG_RUNTIME_DIR/larder/larder.sock`, if that variable is an absolute path: others are ignored, as the XDG
///   specification requires;
/// 4. `/tmp/larder-<uid>/larder.sock`.
///
/// A client that finds no daemon there uses the socket of the machine's service, unless `LARDER_SOCKET` is set.
package enum DefaultSocket {
    /// The path for this process, now.
    package static var path: String { path(environment: Self.environmentVariable, userID: geteuid()) }

    /// The path at which a client of this process's user finds a daemon now.
    package static var clientPath: String {
        clientPath(environment: Self.environmentVariable, userID: geteuid(), exists: FileSystem.exists)
    }

    /// The socket of root's daemon, and of the machine's service.
    package static let system = "/run/larder/larder.sock"

    /// The rule of clients.
    package static func clientPath(
        environment: (String) -> String?, userID: UInt32, exists: (String) -> Bool
    ) -> String {
        let own = path(environment: environment, userID: userID)
        if let named = environment("LARDER_SOCKET"), !named.isEmpty { return named }
        return !exists(own) && exists(system) ? system : own
    }

    /// The rule itself.
    package static func path(environment: (String) -> String?, userID: UInt32) -> String {
        if let named = environment("LARDER_SOCKET"), !named.isEmpty { return named }
        if userID == 0 { return system }
        if let runtime = environment("XDG_RUNTIME_DIR"), runtime.hasPrefix("/") {
            return runtime + "/larder/larder.sock"
        }
        return "/tmp/larder-\(userID)/larder.sock"
    }

    private static func environmentVariable(_ name: String) -> String? {
        guard let text = getenv(name) else { return nil }
        return String(cString: text)
    }
}
