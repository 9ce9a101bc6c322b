import LarderPlatform

/// Checks that enough descriptors are free for what the program needs later.
enum ReservedDescriptors {
    /// The number of free descriptors needed. Swift's task runtime terminates the process if it cannot open descriptors
    /// for its timers.
    private static let needed = 12

    /// - Throws: ``InputOutputError`` if fewer descriptors are free.
    static func check() throws(InputOutputError) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        for _ in 0..<needed {
            let descriptor = dup(STDERR_FILENO)
            guard descriptor >= 0 else {
                // Standard error is closed, so an error could not be reported.
                guard errno != EBADF else { return }
                let reason = SystemErrorText.of(errno)
                throw InputOutputError(message: "too few descriptors are left (ulimit -n): \(reason)")
            }
            opened.append(descriptor)
        }
    }
}
