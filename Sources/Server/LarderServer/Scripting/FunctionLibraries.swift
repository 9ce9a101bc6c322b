import LarderEngine
import LarderPlatform

/// The function libraries of a larder. They are stored in the ledger, the larder's internal database.
///
/// A change takes effect only when it is durable in the ledger.
///
/// `@unchecked Sendable`: `lock` guards ``state``; everything else is constant.
package final class FunctionLibraries: @unchecked Sendable {
    /// All libraries at one instant.
    struct State {
        fileprivate(set) var libraries: [String: FunctionLibrary] = [:]
        /// The functions of all libraries, by their names in lower case, because FCALL ignores case.
        fileprivate var functions: [String: Script] = [:]

        var sorted: [FunctionLibrary] { libraries.values.sorted { $0.name < $1.name } }

        var functionCount: Int { functions.count }

        /// The size of the sources of all libraries, in bytes.
        var byteCount: Int { libraries.values.reduce(0) { $0 + $1.text.count } }

        /// Finds a function by its name, ignoring case; nil if there is none.
        func find(_ name: UnsafeRawBufferPointer) -> Script? {
            let name = String(decoding: name, as: UTF8.self)
            return functions[name] ?? (functions.isEmpty ? nil : functions[name.lowercased()])
        }

        fileprivate mutating func insert(_ library: FunctionLibrary) throws(CommandError) {
            for function in library.functions where functions[function.name.lowercased()] != nil {
                throw CommandError("ERR Function \(function.name) already exists")
            }
            libraries[library.name] = library
            for function in library.functions { functions[function.name.lowercased()] = function.script }
        }

        fileprivate mutating func remove(_ name: String) -> FunctionLibrary? {
            guard let library = libraries.removeValue(forKey: name) else { return nil }
            for function in library.functions { functions[function.name.lowercased()] = nil }
            return library
        }
    }

    /// What FUNCTION RESTORE does with the existing libraries.
    enum RestorePolicy {
        case flush, append, replace
    }

    static let factName = "functions"
    /// The name of the file in which earlier versions stored the libraries.
    static let fileName = "FUNCTIONS"
    /// The maximum length of the stored text, in bytes. This is four times the default of `--max-scripts`, because that
    /// limit may have been higher when the text was stored.
    static let fileBytesMax = 64 << 20

    private let lock = Lock()
    /// Held during a whole change, including the write to the ledger, so that changes happen one at a time.
    private let changing = Lock()
    private var state = State()
    private let ledger: Ledger
    private let path: String
    private let bytesMax: Int
    private let scripts: ScriptCache
    private let log: Log
    private let lines: LimitedLines
    /// Why the stored libraries could not be read; nil if they were read. With a defect, there are no functions, and
    /// the stored libraries must not be changed.
    private var defect: CommandError?

    /// Reads the stored libraries. Logs problems instead of throwing them.
    /// - Parameters:
    ///   - bytesMax: the limit for the size of all sources together, in bytes.
    ///   - now: the current time. A damaged file is renamed, and its new name contains this time.
    ///   - lines: limits the log lines that libraries write.
    init(
        ledger: Ledger, directory: String, bytesMax: Int, scripts: ScriptCache, now: Int64, log: Log,
        lines: LimitedLines
    ) {
        self.ledger = ledger
        path = directory + "/" + Self.fileName
        self.bytesMax = bytesMax
        self.scripts = scripts
        self.log = log
        self.lines = lines
        do throws(LarderError) {
            try takeOverFile(now)
            for text in try storedTexts() { loadAtStart(text) }
        } catch {
            ledger.countLoss()
            defect = CommandError("ERR the function libraries could not be read: \(error)")
            log.error("function libraries were not loaded: \(error)")
        }
    }

    /// Moves the file of an earlier version to the ledger, if there is one.
    private func takeOverFile(_ now: Int64) throws(LarderError) {
        let found: [UInt8]?
        do throws(FileError) {
            found = try FileSystem.read(path, bytesMax: Self.fileBytesMax)
        } catch {
            throw LarderError(.io, error.description, operation: "read \(path)", underlying: error)
        }
        guard let payload = found else { return }
        guard (try? Self.texts(of: payload, bytesMax: Self.fileBytesMax)) != nil else { return setAside(now) }
        try ledger.adopt(Self.factName, payload, from: path)
    }

    private func storedTexts() throws(LarderError) -> [[UInt8]] {
        guard let payload = try ledger.value(Self.factName) else {
            if ledger.lossMilliseconds > 0 {
                log.error("function libraries may have been lost because the larder's ledger was damaged")
            }
            return []
        }
        do throws(DumpPayload.Defect) {
            return try Self.texts(of: payload, bytesMax: Self.fileBytesMax)
        } catch {
            throw LarderError(.damaged, "the functions in the ledger are malformed", operation: "read functions")
        }
    }

    /// Renames a damaged file, so that the administrator can examine it.
    private func setAside(_ now: Int64) {
        ledger.countLoss()
        let place = "\(path).damaged-\(now)"
        do throws(FileError) {
            try FileSystem.rename(path, to: place)
            try FileSystem.syncDirectory(FileSystem.parent(path))
            log.error("function libraries were not loaded: \(path) is damaged and was moved to \(place)")
        } catch {
            log.error("function libraries were not loaded: \(path) is damaged and could not be moved: \(error)")
        }
    }

    /// Loads a stored library. If loading fails, keeps the library's source, but no functions. Otherwise the next
    /// change would remove the library from the ledger.
    private func loadAtStart(_ text: [UInt8]) {
        do throws(CommandError) {
            try state.insert(try library(text, by: "a kept library"))
        } catch {
            guard let (name, code) = try? FunctionLibrary.parse(text) else {
                return log.error("dropped a function library: \(error.text)")
            }
            log.error("could not load the library '\(name)': \(error.text)")
            state.libraries[name] = FunctionLibrary(name: name, text: text, functions: [], code: code)
        }
    }

    // MARK: Lookup

    /// Returns the current libraries. Throws if they could not be read.
    func current() throws(CommandError) -> State {
        if let defect { throw defect }
        return lock.withLock { state }
    }

    // MARK: Changes

    /// Loads a library.
    /// - Parameter writer: the name of the client in log lines.
    /// - Returns: the name of the library.
    func load(_ text: [UInt8], replaces: Bool, by writer: String) throws(CommandError) -> String {
        let name = try FunctionLibrary.parse(text).name
        try change { (next) throws(CommandError) in
            guard replaces || next.libraries[name] == nil else {
                throw CommandError("ERR Library '\(name)' already exists")
            }
            let library = try library(text, by: writer)
            _ = next.remove(name)
            try next.insert(library)
        }
        return name
    }

    func delete(_ name: String) throws(CommandError) {
        try change { (next) throws(CommandError) in
            guard next.remove(name) != nil else { throw CommandError("ERR Library not found") }
        }
    }

    func flush() throws(CommandError) {
        try change { (next) throws(CommandError) in next = State() }
    }

    /// Restores libraries from the result of ``dump()``.
    /// - Parameter writer: the name of the client in log lines.
    func restore(_ payload: [UInt8], _ policy: RestorePolicy, by writer: String) throws(CommandError) {
        let texts: [[UInt8]]
        do throws(DumpPayload.Defect) {
            texts = try Self.texts(of: payload, bytesMax: bytesMax)
        } catch {
            throw CommandError(
                error == .footer
                    ? "ERR DUMP payload version or checksum are wrong" : "ERR given type is not a function")
        }
        try change { (next) throws(CommandError) in
            if policy == .flush { next = State() }
            for text in texts {
                let library = try library(text, by: writer)
                if next.libraries[library.name] != nil {
                    guard policy == .replace else { throw CommandError("ERR Library \(library.name) already exists") }
                    _ = next.remove(library.name)
                }
                try next.insert(library)
            }
        }
    }

    /// Returns the sources of the libraries in a result of ``dump()``.
    package static func texts(of payload: [UInt8], bytesMax: Int) throws(DumpPayload.Defect) -> [[UInt8]] {
        try payload.withUnsafeBytes { bytes in
            Result { () throws(DumpPayload.Defect) in try DumpPayload.decodeLibraries(bytes, bytesMax: bytesMax) }
        }.get()
    }

    /// Returns the sources of all libraries in the format of Redis 7.0.
    func dump() throws(CommandError) -> [UInt8] { DumpPayload.encode(libraries: try current().sorted.map(\.text)) }

    /// Changes the libraries, and stores them. If `body` throws, nothing is changed. May block.
    private func change(_ body: (inout State) throws(CommandError) -> Void) throws(CommandError) {
        if let defect { throw defect }
        try changing.withLock { () throws(CommandError) in
            let previous = lock.withLock { state }
            var next = previous
            try body(&next)
            // Sources that already exceed the limit must not become longer. (The limit was higher before.)
            guard next.byteCount <= max(bytesMax, previous.byteCount) else {
                throw CommandError(
                    "ERR function libraries are limited to \(bytesMax) bytes (--max-scripts): "
                        + "use FUNCTION DELETE")
            }
            let payload = DumpPayload.encode(libraries: next.sorted.map(\.text))
            do throws(LarderError) {
                try ledger.set(Self.factName, to: payload)
            } catch {
                throw CommandError(
                    "ERR the function libraries could not be saved; nothing was changed: \(error.message)")
            }
            lock.withLock { state = next }
        }
    }

    /// Compiles the source of a library, and collects the functions that it registers.
    private func library(_ text: [UInt8], by writer: String) throws(CommandError) -> FunctionLibrary {
        let (name, code) = try FunctionLibrary.parse(text)
        let registration = LibraryRegistration(log: ScriptLog(lines, of: writer))
        let interpreter = try scripts.take()
        defer { scripts.give(interpreter) }
        try interpreter.register(code, registration)
        guard !registration.declarations.isEmpty else { throw CommandError("ERR No functions registered") }
        return FunctionLibrary(
            name: name, text: text,
            functions: registration.declarations.map { declaration in
                LibraryFunction(
                    name: declaration.name, description: declaration.description, flags: declaration.flags,
                    script: Script(
                        function: declaration.name, of: code,
                        noWrites: declaration.flags & LibraryFunction.noWrites != 0))
            }, code: code)
    }
}
