import LarderPlatform

/// The default path of a daemon's socket. larderd listens on the first path that applies, and clients connect to it:
///
/// - the path in the environment variable `LARDER_SOCKET`, if it is set and not empty;
/// - for root, `/run/larder/larder.sock`;
/// - `$XDG_RUNTIME_DIR/larder/larder.sock`, if the variable is an absolute path, as the XDG specification requires;
/// - `/tmp/larder-<uid>/larder.sock`.
///
/// If there is no socket at this path and `LARDER_SOCKET` is not set, clients use the socket of the system service.
package enum DefaultSocket {
    /// The path on which a daemon with this process's user and environment listens.
    package static var path: String { path(environment: Self.environmentVariable, userID: geteuid()) }

    /// The path to which a client with this process's user and environment connects.
    package static var clientPath: String {
        clientPath(environment: Self.environmentVariable, userID: geteuid(), exists: FileSystem.exists)
    }

    /// The socket of the system service, and of a daemon that root starts.
    package static let system = "/run/larder/larder.sock"

    /// Returns the path for a client. The parameters replace the system, for tests.
    package static func clientPath(
        environment: (String) -> String?, userID: UInt32, exists: (String) -> Bool
    ) -> String {
        let own = path(environment: environment, userID: userID)
        if let named = environment("LARDER_SOCKET"), !named.isEmpty { return named }
        return !exists(own) && exists(system) ? system : own
    }

    /// Returns the path for a daemon. The parameters replace the system, for tests.
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
