import LarderPlatform

/// The descriptors 0 to 2: standard input, output and error.
package enum StandardDescriptors {
    /// Opens `/dev/null` for each standard descriptor that is closed. Otherwise a file that the program opens could get
    /// the number 2, and log messages would be written into that file. Call this before anything else is opened. Using
    /// a standard input or output that was opened in this way still fails with EBADF. So lost output does not look like
    /// success. Text for standard error is discarded.
    ///
    /// If there is no `/dev/null`, opens the root directory instead, to which nothing can be written.
    /// - Returns: false if a descriptor could not be opened.
    package static func fill() -> Bool {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // open(2) returns the lowest free number. All lower numbers are in use, so this is `descriptor`.
            let mode = descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY
            if open("/dev/null", mode) != descriptor, open("/", O_RDONLY) != descriptor { return false }
        }
        return true
    }
}
