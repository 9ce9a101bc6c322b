#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

extension LevelDBError {
    /// A system call of ours that has just failed, as `errno` says: `.notFound` for ENOENT, else `.ioError`.
    init(systemCall: String, operation: String, path: String) {
        let number = errno
        self.init(
            code: number == ENOENT ? .notFound : .ioError,
            message: "\(systemCall): \(String(cString: strerror(number)))",
            operation: operation, path: path)
    }
}
