import CLarderLevelDB

// LevelDB's C functions take the address of a pointer, which is nil on entry. On failure they set it to an allocated
// string. Only the beginning of the string identifies the kind of error.

extension LevelDBError {
    /// Parses LevelDB's "Kind: text". No other code parses it.
    init(status: String, operation: String, path: String, key: [UInt8]?) {
        let prefixes: [(String, Code)] = [
            ("NotFound: ", .notFound),
            ("Corruption: ", .corruption),
            ("Not implemented: ", .notSupported),
            ("Invalid argument: ", .invalidArgument),
            ("IO error: ", .ioError),
        ]
        let known = prefixes.first { status.hasPrefix($0.0) }
        let message = String(status.dropFirst(known?.0.count ?? 0))
        let code = Self.blamesTable(message) ? .corruption : known?.1 ?? .unknown
        self.init(code: code, message: message, operation: operation, path: path, key: key)
    }

    /// Whether the text reports that a table is missing, or shorter than when it was written. LevelDB reports these as
    /// ENOENT and EINVAL, like transient errors of the system. For a table both are permanent: they mean damage.
    /// Reading an intact table never returns EINVAL.
    private static func blamesTable(_ message: String) -> Bool {
        for ending in [".ldb: Invalid argument", ".ldb: No such file or directory"] where message.hasSuffix(ending) {
            return true
        }
        return false
    }
}

/// Runs one C call. If the call returns an error string, throws it as an error and frees it.
/// - Parameter key: copied only if there is an error.
@inline(__always)
func checked<Result>(
    _ operation: StaticString, path: String, key: UnsafeRawBufferPointer? = nil,
    _ call: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) throws(LevelDBError) -> Result {
    var status: UnsafeMutablePointer<CChar>?
    let result = call(&status)
    if let status { throw takeError(status, operation, path, key) }
    return result
}

@inline(never)
private func takeError(
    _ status: UnsafeMutablePointer<CChar>, _ operation: StaticString, _ path: String, _ key: UnsafeRawBufferPointer?
) -> LevelDBError {
    defer { leveldb_free(status) }
    return LevelDBError(
        status: String(cString: status), operation: operation.description, path: path, key: key.map { [UInt8]($0) })
}
