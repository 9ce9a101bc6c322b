import LarderPlatform

/// The SQLite functions used here. They are looked up at run time, so the package builds without SQLite's header and
/// the benchmark runs without SQLite.
///
/// The signatures are those of SQLite's documented C interface, which is stable across version 3.
struct SQLiteLibrary: @unchecked Sendable {
    static let done: Int32 = 101
    static let row: Int32 = 100

    /// The library, or the reason why it is missing. It may be shared, because it has only function pointers and
    /// constants.
    static let shared = Result<SQLiteLibrary, BenchError> { () throws(BenchError) in try SQLiteLibrary() }

    typealias Text = UnsafePointer<CChar>
    typealias Destructor = @convention(c) (UnsafeMutableRawPointer?) -> Void
    typealias RowHandler =
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<Text?>?, UnsafeMutablePointer<Text?>?
        ) -> Int32

    let open: @convention(c) (Text, UnsafeMutablePointer<OpaquePointer?>) -> Int32
    let close: @convention(c) (OpaquePointer?) -> Int32
    let exec:
        @convention(c) (
            OpaquePointer?, Text, RowHandler?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Text?>?
        ) -> Int32
    let prepare:
        @convention(c) (
            OpaquePointer?, Text, Int32, UnsafeMutablePointer<OpaquePointer?>, UnsafeMutablePointer<Text?>?
        ) -> Int32
    let bind: @convention(c) (OpaquePointer?, Int32, UnsafeRawPointer?, Int32, Destructor?) -> Int32
    let step: @convention(c) (OpaquePointer?) -> Int32
    let reset: @convention(c) (OpaquePointer?) -> Int32
    let columnBlob: @convention(c) (OpaquePointer?, Int32) -> UnsafeRawPointer?
    let columnBytes: @convention(c) (OpaquePointer?, Int32) -> Int32
    let finalize: @convention(c) (OpaquePointer?) -> Int32
    let message: @convention(c) (OpaquePointer?) -> Text?
    let version: String

    private init() throws(BenchError) {
        var library: UnsafeMutableRawPointer?
        for name in ["libsqlite3.so.0", "libsqlite3.dylib"] where library == nil { library = dlopen(name, RTLD_NOW) }
        guard let library else { throw BenchError("SQLite's library is not there (Debian: libsqlite3-0)") }
        func find<Function>(_ name: String, as type: Function.Type) throws(BenchError) -> Function {
            guard let symbol = dlsym(library, name) else { throw BenchError("SQLite has no \(name)") }
            // The symbol is the address of a C function with the documented signature `type`.
            return unsafeBitCast(symbol, to: type)
        }
        open = try find("sqlite3_open", as: type(of: open))
        close = try find("sqlite3_close", as: type(of: close))
        exec = try find("sqlite3_exec", as: type(of: exec))
        prepare = try find("sqlite3_prepare_v2", as: type(of: prepare))
        bind = try find("sqlite3_bind_blob", as: type(of: bind))
        step = try find("sqlite3_step", as: type(of: step))
        reset = try find("sqlite3_reset", as: type(of: reset))
        columnBlob = try find("sqlite3_column_blob", as: type(of: columnBlob))
        columnBytes = try find("sqlite3_column_bytes", as: type(of: columnBytes))
        finalize = try find("sqlite3_finalize", as: type(of: finalize))
        message = try find("sqlite3_errmsg", as: type(of: message))
        let text = try find("sqlite3_libversion", as: (@convention(c) () -> Text?).self)()
        version = text.map { String(cString: $0) } ?? "unknown"
    }
}
