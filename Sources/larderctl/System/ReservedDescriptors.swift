import LarderPlatform

/// Checks for descriptors that the program cannot do without later.
enum ReservedDescriptors {
    /// The runtime of tasks terminates the process if it cannot open descriptors for its timers.
    private static let needed = 12

    /// - Throws: ``InputOutputError`` if there are too few left.
    static func check() throws(InputOutputError) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        for _ in 0..<needed {
            let descriptor = dup(STDERR_FILENO)
            guard descriptor >= 0 else {
                // Without standard error, nothing can be reported.
                guard errno != EBADF else { return }
                let reason = SystemErrorText.of(errno)
                throw InputOutputError(message: "too few descriptors are left (ulimit -n): \(reason)")
            }
            opened.append(descriptor)
        }
    }
}
