import CLevelDB

// How LevelDB's C functions report errors: each takes the address of a pointer that is nil on entry, and on failure
// leaves a malloc'ed string there. The kind of the error is only to be had from the string's beginning.

extension LevelDBError {
    /// Takes LevelDB's "Kind: text" apart. The only place that does.
    init(status: String, operation: String, path: String, key: [UInt8]?) {
        let prefixes: [(String, Code)] = [
            ("NotFound: ", .notFound),
            ("Corruption: ", .corruption),
            ("Not implemented: ", .notSupported),
            ("Invalid argument: ", .invalidArgument),
            ("IO error: ", .ioError),
        ]
        let known = prefixes.first { status.hasPrefix($0.0) }
        self.init(
            code: known?.1 ?? .unknown, message: String(status.dropFirst(known?.0.count ?? 0)), operation: operation,
            path: path, key: key)
    }
}

/// Runs one C call and turns the string that it may leave into a thrown error. The string is freed.
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
