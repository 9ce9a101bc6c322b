import CLarderLevelDB
import LarderPlatform

// Calls of LevelDB's C functions. They take bytes as a pointer to char, never null, and a length. They report errors
// through a parameter: the address of a pointer, which the caller sets to nil. If a function fails, it sets the pointer
// to an allocated string. Only the beginning of this string identifies the kind of error.

extension LevelDBError {
    /// Parses an error string of LevelDB, which has the form "Kind: text".
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

    /// The errno whose text ends the message, if it is a usual errno of failed writes; otherwise nil.
    package var systemErrorNumber: Int32? {
        [ENOSPC, EDQUOT, EFBIG, EROFS, EIO, EACCES, ENOENT].first { message.hasSuffix(": " + SystemErrorText.of($0)) }
    }

    /// Whether the text reports that a table is missing, or shorter than when it was written. LevelDB reports these
    /// cases as I/O errors with the text of ENOENT or EINVAL. For a table both mean damage, not a temporary error:
    /// reading an intact table never returns EINVAL.
    private static func blamesTable(_ message: String) -> Bool {
        for ending in [".ldb: Invalid argument", ".ldb: No such file or directory"] where message.hasSuffix(ending) {
            return true
        }
        return false
    }
}

/// Runs one C call. If the call sets an error string, throws it as a ``LevelDBError`` and frees the string.
/// - Parameter key: the key for the error. Copied only if there is an error.
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

extension UnsafeRawBufferPointer {
    /// The address of the first byte; for an empty buffer the address of an unused byte, because LevelDB's C functions
    /// do not allow null.
    @inline(__always)
    var characters: UnsafePointer<CChar> {
        guard let baseAddress else { return unusedByte }
        return baseAddress.assumingMemoryBound(to: CChar.self)
    }
}

/// The byte to which `characters` of an empty buffer points. `nonisolated(unsafe)` is safe here, because it is never
/// written again.
private nonisolated(unsafe) let unusedByte: UnsafePointer<CChar> = {
    let byte = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
    byte.initialize(to: 0)
    return UnsafePointer(byte)
}()

extension [UInt8] {
    /// `withUnsafeBytes` with a typed error.
    @inlinable func withRawBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { (bytes) throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}
