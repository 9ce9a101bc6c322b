import LarderPlatform

/// The reason why files cannot be read now. Damage is never thrown: it is in the report. After an error, discard the
/// reader. Another reader may be created later.
package struct SalvageError: Error, Hashable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The operating system reported an error: no permission, no file descriptors, no memory, a device error.
        case system
        /// The logs exceed the memory limit in the options.
        case tooLarge
        /// The directory is not a LevelDB database with bytewise key order.
        case unsupported
    }

    package let code: Code
    /// The system's errno; 0 unless the code is `.system`.
    package let errno: Int32
    /// The path of the file or directory.
    package let path: String
    package let message: String

    init(_ code: Code, errno: Int32 = 0, path: String, message: String) {
        self.code = code
        self.errno = errno
        self.path = path
        self.message = message
    }

    /// Creates the error for a failed system call.
    init(systemCall: String, path: String, errno number: Int32) {
        self.init(.system, errno: number, path: path, message: "\(systemCall): \(SystemErrorText.of(number))")
    }
}

extension SalvageError: CustomStringConvertible {
    package var description: String { "salvage of \(path): \(message)" }
}
