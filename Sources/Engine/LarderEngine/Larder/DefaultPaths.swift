import LarderPlatform

/// The default directories of larders.
package enum DefaultPaths {
    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// A path in the environment. The XDG specification says that relative ones are ignored: they would name another place
    /// in each working directory.
    private static func absolute(_ name: String) -> String? {
        environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// Whether only this user can create ``daemonLarder``: not if neither `XDG_CACHE_HOME` nor `HOME` names a place for
    /// the user's files.
    package static var isDaemonLarderSafe: Bool {
        geteuid() == 0 || absolute("XDG_CACHE_HOME") != nil || environment("HOME") != nil
    }

    /// The user's cache directory: `$XDG_CACHE_HOME`, else `~/.cache`; without a home one in `/tmp` that no two users share.
    static var userCache: String {
        absolute("XDG_CACHE_HOME") ?? (environment("HOME") ?? "/tmp/larder-\(geteuid())") + "/.cache"
    }

    /// The daemon's larder: `/var/cache/larder` for root, else `larder` in the user's cache directory.
    package static var daemonLarder: String {
        geteuid() == 0 ? "/var/cache/larder" : userCache + "/larder"
    }

    /// A program's own larder: the user's cache directory, the program's name, `larder`, so that two programs do not
    /// meet by accident.
    package static func programLarder(program: String) -> String { userCache + "/" + program + "/larder" }
}
