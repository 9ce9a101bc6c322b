import LarderPlatform

/// The environment of the process, as far as it is a message for this process alone.
package enum Environment {
    /// Removes a variable, so that no other program takes it as meant for itself.
    package static func take(_ name: String) -> String? {
        guard let text = getenv(name).map({ String(cString: $0) }) else { return nil }
        unsetenv(name)
        return text
    }
}
