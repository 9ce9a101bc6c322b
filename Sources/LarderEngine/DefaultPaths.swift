/// Where larders and sockets are when nobody says otherwise.
package enum DefaultPaths {
    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// The user's cache directory: `$XDG_CACHE_HOME`, else `~/.cache`.
    static var userCache: String {
        environment("XDG_CACHE_HOME") ?? (environment("HOME") ?? "/tmp") + "/.cache"
    }

    /// The daemon's larder: `/var/cache/larder` for root, else `larder` in the user's cache directory.
    package static var daemonLarder: String {
        geteuid() == 0 ? "/var/cache/larder" : userCache + "/larder"
    }

    /// A program's own larder: the user's cache directory, the program's name, `larder`, so that two programs do not
    /// meet by accident.
    package static func programLarder(program: String) -> String { userCache + "/" + program + "/larder" }

    /// The daemon's socket: `$LARDER_SOCKET`; else for root `/run/larder/larder.sock`; else in `$XDG_RUNTIME_DIR` or,
    /// without one, in `/tmp/larder-<uid>`.
    package static var socket: String {
        if let path = environment("LARDER_SOCKET") { return path }
        if geteuid() == 0 { return "/run/larder/larder.sock" }
        if let runtime = environment("XDG_RUNTIME_DIR") { return runtime + "/larder/larder.sock" }
        return "/tmp/larder-\(geteuid())/larder.sock"
    }
}
