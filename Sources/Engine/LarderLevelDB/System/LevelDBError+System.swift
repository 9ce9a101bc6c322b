import LarderPlatform

extension LevelDBError {
    /// The error of a system call of this module that has just failed: `.notFound` if `errno` is ENOENT, else
    /// `.ioError`.
    init(systemCall: String, operation: String, path: String) {
        let number = errno
        self.init(
            code: number == ENOENT ? .notFound : .ioError,
            message: "\(systemCall): \(SystemErrorText.of(number))",
            operation: operation, path: path)
    }
}
