import LarderPlatform

/// Environment variables that are meant for this process alone.
package enum Environment {
    /// Reads and removes a variable, so that child processes do not inherit it.
    package static func take(_ name: String) -> String? {
        guard let text = getenv(name).map({ String(cString: $0) }) else { return nil }
        unsetenv(name)
        return text
    }
}
