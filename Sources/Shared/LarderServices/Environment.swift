import LarderPlatform

/// Environment variables that child processes must not inherit.
package enum Environment {
    /// Returns the value of a variable and removes it from the environment; nil if it is not set.
    package static func take(_ name: String) -> String? {
        guard let text = getenv(name).map({ String(cString: $0) }) else { return nil }
        unsetenv(name)
        return text
    }
}
