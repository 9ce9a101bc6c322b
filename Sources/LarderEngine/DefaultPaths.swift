/// Where larders are when nobody says otherwise.
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
}
