import LarderPlatform

/// The default directories of larders.
package enum DefaultPaths {
    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// Returns an absolute path from an environment variable. Ignores a relative path, as the XDG specification
    /// requires, because it would depend on the working directory.
    private static func absolute(_ name: String) -> String? {
        environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// Whether only this user can create ``daemonLarder``. False if the path is in `/tmp`, because neither
    /// `XDG_CACHE_HOME` nor `HOME` is set.
    package static var isDaemonLarderSafe: Bool {
        geteuid() == 0 || absolute("XDG_CACHE_HOME") != nil || environment("HOME") != nil
    }

    /// The user's cache directory: `$XDG_CACHE_HOME`, otherwise `~/.cache`. Without a home directory, a directory in
    /// `/tmp` with the user's ID in its path.
    static var userCache: String {
        absolute("XDG_CACHE_HOME") ?? (environment("HOME") ?? "/tmp/larder-\(geteuid())") + "/.cache"
    }

    /// The directory of the daemon's larder: `/var/cache/larder` for root, otherwise `larder` in the user's cache
    /// directory.
    package static var daemonLarder: String { geteuid() == 0 ? "/var/cache/larder" : userCache + "/larder" }

    /// Returns the directory of a program's own larder: `larder` in a directory with the program's name, in the user's
    /// cache directory. So programs with different names do not share a larder by accident.
    package static func programLarder(program: String) -> String { userCache + "/" + program + "/larder" }
}
