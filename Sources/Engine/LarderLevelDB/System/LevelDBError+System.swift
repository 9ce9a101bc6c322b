import LarderPlatform

extension LevelDBError {
    /// A system call of this module that has just failed, according to `errno`: `.notFound` for ENOENT, else
    /// `.ioError`.
    init(systemCall: String, operation: String, path: String) {
        let number = errno
        self.init(
            code: number == ENOENT ? .notFound : .ioError,
            message: "\(systemCall): \(SystemErrorText.of(number))",
            operation: operation, path: path)
    }
}
