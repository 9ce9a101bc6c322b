#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The descriptors 0 to 2, which every program takes for its input, its output and its errors.
package enum StandardDescriptors {
    /// Opens those that are closed on /dev/null, so that no file of the program gets one of these numbers, and with it what
    /// is meant for the log. To be called before anything else is opened. Who reads the input then, or writes the output, gets
    /// an error (EBADF), as if they were closed still: a result that nobody gets is no success. Errors are lost.
    ///
    /// Where there is no /dev/null, the root directory takes the place: what is written there fails, and nothing is spoilt.
    /// - Returns: false when not even that could be opened.
    package static func fill() -> Bool {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest that is free is the one that is missing: those below it are open.
            let mode = descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY
            if open("/dev/null", mode) != descriptor, open("/", O_RDONLY) != descriptor { return false }
        }
        return true
    }
}
