import LarderPlatform

/// Descriptors that a program will need later, where it could not do without.
enum ReservedDescriptors {
    /// The runtime of tasks ends the process when it finds no descriptor for its timers.
    private static let needed = 12

    /// - Throws: ``InputOutputError`` if there are too few left.
    static func check() throws(InputOutputError) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        for _ in 0..<needed {
            let descriptor = dup(STDERR_FILENO)
            guard descriptor >= 0 else {
                // Without a standard error there is nothing to count with.
                guard errno != EBADF else { return }
                let reason = SystemErrorText.of(errno)
                throw InputOutputError(message: "too few descriptors are left (ulimit -n): \(reason)")
            }
            opened.append(descriptor)
        }
    }
}
