import LarderPlatform

/// The default directories of larders.
package enum DefaultPaths {
    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// A path in the environment. According to the XDG specification relative ones are ignored: they would refer to
    /// another place in each working directory.
    private static func absolute(_ name: String) -> String? {
        environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// Whether only this user can create ``daemonLarder``: not if neither `XDG_CACHE_HOME` nor `HOME` is set.
    package static var isDaemonLarderSafe: Bool {
        geteuid() == 0 || absolute("XDG_CACHE_HOME") != nil || environment("HOME") != nil
    }

    /// The user's cache directory: `$XDG_CACHE_HOME`, else `~/.cache`; without a home a directory in `/tmp` that is
    /// unique to the user.
    static var userCache: String {
        absolute("XDG_CACHE_HOME") ?? (environment("HOME") ?? "/tmp/larder-\(geteuid())") + "/.cache"
    }

    /// The daemon's larder: `/var/cache/larder` for root, else `larder` in the user's cache directory.
    package static var daemonLarder: String {
        geteuid() == 0 ? "/var/cache/larder" : userCache + "/larder"
    }

    /// A program's own larder: the user's cache directory, the program's name, `larder`, so that two programs do not
    /// share one by accident.
    package static func programLarder(program: String) -> String { userCache + "/" + program + "/larder" }
}
