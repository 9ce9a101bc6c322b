import LarderPlatform

extension LevelDBError {
    /// Creates the error for a system call that has just failed, from `errno`: `.notFound` for ENOENT, otherwise
    /// `.ioError`.
    init(systemCall: String, operation: String, path: String) {
        let number = errno
        self.init(
            code: number == ENOENT ? .notFound : .ioError,
            message: "\(systemCall): \(SystemErrorText.of(number))",
            operation: operation, path: path)
    }
}
