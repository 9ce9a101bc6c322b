import LarderPlatform

/// The default directories of larders.
package enum DefaultPaths {
    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// An absolute path from the environment. Relative paths are ignored, as the XDG specification requires, because
    /// they would depend on the working directory.
    private static func absolute(_ name: String) -> String? {
        environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// Whether only this user can create ``daemonLarder``. False if neither `XDG_CACHE_HOME` nor `HOME` is set.
    package static var isDaemonLarderSafe: Bool {
        geteuid() == 0 || absolute("XDG_CACHE_HOME") != nil || environment("HOME") != nil
    }

    /// The user's cache directory: `$XDG_CACHE_HOME`, else `~/.cache`. Without a home directory, a directory in `/tmp`
    /// with the user's id in its name.
    static var userCache: String {
        absolute("XDG_CACHE_HOME") ?? (environment("HOME") ?? "/tmp/larder-\(geteuid())") + "/.cache"
    }

    /// The daemon's larder: `/var/cache/larder` for root, else `larder` in the user's cache directory.
    package static var daemonLarder: String {
        geteuid() == 0 ? "/var/cache/larder" : userCache + "/larder"
    }

    /// The path of a program's own larder: the user's cache directory, the program's name, and `larder`. Programs with
    /// different names therefore do not share a larder by accident.
    package static func programLarder(program: String) -> String { userCache + "/" + program + "/larder" }
}
