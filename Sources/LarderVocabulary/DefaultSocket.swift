import Platform

/// The path of a daemon's socket if nobody names one. larderd and its clients follow the same rule:
///
/// 1. the environment variable `LARDER_SOCKET`, if it is set and not empty;
/// 2. for root `/run/larder/larder.sock`;
/// 3. `$XDG_RUNTIME_DIR/larder/larder.sock`, if that variable is an absolute path: others are ignored, as the XDG specification requires;
/// 4. `/tmp/larder-<uid>/larder.sock`.
package enum DefaultSocket {
    /// The path for this process, now.
    package static var path: String { path(environment: Self.environmentVariable, userID: geteuid()) }

    /// The rule itself.
    package static func path(environment: (String) -> String?, userID: UInt32) -> String {
        if let named = environment("LARDER_SOCKET"), !named.isEmpty { return named }
        if userID == 0 { return "/run/larder/larder.sock" }
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
