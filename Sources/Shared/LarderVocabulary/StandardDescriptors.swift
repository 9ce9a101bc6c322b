import LarderPlatform

/// The descriptors 0 to 2: standard input, output and errors.
package enum StandardDescriptors {
    /// Opens closed standard descriptors on /dev/null, so that no file of the program gets one of these numbers, and
    /// with it the text meant for the log. Call it before anything else is opened. Reading this input, or writing this
    /// output, still fails (EBADF), as if it were closed, because lost output must not look like success. Error output
    /// is discarded.
    ///
    /// Without /dev/null the root directory is opened instead: writing to it fails harmlessly.
    /// - Returns: false if even that could not be opened.
    package static func fill() -> Bool {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The system returns the lowest free number, and the lower ones are open.
            let mode = descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY
            if open("/dev/null", mode) != descriptor, open("/", O_RDONLY) != descriptor { return false }
        }
        return true
    }
}
