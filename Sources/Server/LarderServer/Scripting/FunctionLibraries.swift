import LarderEngine
import LarderPlatform

/// The libraries of functions, in memory and in the larder's ledger.
///
/// A change is in the ledger, durably, before it is seen.
///
/// Thread-safe. The proof for `@unchecked Sendable`: ``state`` is read and written with the lock held, everything else
/// is constant.
package final class FunctionLibraries: @unchecked Sendable {
    /// All libraries at one time. A value.
    struct State {
        fileprivate(set) var libraries: [String: FunctionLibrary] = [:]
        /// The functions of all libraries, by their names in small letters: FCALL does not look at capitals.
        fileprivate var functions: [String: Script] = [:]

        /// By their names, in order.
        var sorted: [FunctionLibrary] { libraries.values.sorted { $0.name < $1.name } }

        var functionCount: Int { functions.count }

        /// The bytes of all texts.
        var byteCount: Int { libraries.values.reduce(0) { $0 + $1.text.count } }

        /// The function with a name, whatever its capitals; nil if there is none.
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

    /// What happens to libraries that are there when others are restored.
    enum RestorePolicy {
        case flush, append, replace
    }

    static let factName = "functions"
    /// The file in which earlier versions kept them.
    static let fileName = "FUNCTIONS"
    /// The longest fact or file that is read: four times what fits by default, for a limit that was higher before.
    static let fileBytesMax = 64 << 20

    private let lock = Lock()
    /// Held while a change is made and written: one at a time.
    private let changing = Lock()
    private var state = State()
    private let ledger: Ledger
    private let path: String
    private let bytesMax: Int
    private let scripts: ScriptCache
    private let log: Log
    private let lines: LimitedLines
    /// Why what is stored cannot be used; then there are no functions, and it is left as it is.
    private var defect: CommandError?

    /// Reads the functions of a larder. What is wrong with them is written to the log.
    /// - Parameters:
    ///   - bytesMax: the most bytes of all libraries' texts.
    ///   - now: names a damaged file, which is kept.
    ///   - lines: what the libraries write.
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
            defect = CommandError("ERR the libraries of functions could not be read: \(error)")
            log.error("there are no functions: \(error)")
        }
    }

    /// Takes over the file of an earlier version, if there is one.
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
                log.error("libraries of functions may have been lost with damage to the larder's ledger")
            }
            return []
        }
        do throws(DumpPayload.Defect) {
            return try Self.texts(of: payload, bytesMax: Self.fileBytesMax)
        } catch {
            throw LarderError(.damaged, "what the ledger has of functions is malformed", operation: "read functions")
        }
    }

    /// Keeps a damaged file under another name, so that the next change does not destroy it.
    private func setAside(_ now: Int64) {
        ledger.countLoss()
        let place = "\(path).damaged-\(now)"
        do throws(FileError) {
            try FileSystem.rename(path, to: place)
            try FileSystem.syncDirectory(FileSystem.parent(path))
            log.error("there are no functions: \(path) is damaged; it was moved to \(place)")
        } catch {
            log.error("there are no functions: \(path) is damaged, and could not be moved away: \(error)")
        }
    }

    /// A library that cannot be loaded is kept without functions: it must not be lost with the next change.
    private func loadAtStart(_ text: [UInt8]) {
        do throws(CommandError) {
            try state.insert(try library(text, by: "a kept library"))
        } catch {
            guard let (name, code) = try? FunctionLibrary.parse(text) else {
                return log.error("a library of functions is dropped: \(error.text)")
            }
            log.error("the library '\(name)' has no functions: \(error.text)")
            state.libraries[name] = FunctionLibrary(name: name, text: text, functions: [], code: code)
        }
    }

    // MARK: Looking

    /// All libraries as they are now.
    func current() throws(CommandError) -> State {
        if let defect { throw defect }
        return lock.withLock { state }
    }

    /// The function with a name, whatever its capitals; nil if there is none.
    func find(_ name: UnsafeRawBufferPointer) -> Script? {
        lock.withLock { state.find(name) }
    }

    // MARK: Changes

    /// Loads a library.
    /// - Parameter writer: who brings it, for the log.
    /// - Returns: its name.
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

    /// Takes what ``dump()`` returned.
    /// - Parameter writer: who brings it, for the log.
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

    /// The texts of the libraries in a payload of ``dump()``.
    package static func texts(of payload: [UInt8], bytesMax: Int) throws(DumpPayload.Defect) -> [[UInt8]] {
        try payload.withUnsafeBytes { bytes in
            Result { () throws(DumpPayload.Defect) in try DumpPayload.decodeLibraries(bytes, bytesMax: bytesMax) }
        }.get()
    }

    /// All libraries, in the form of Redis 7.0.
    func dump() throws(CommandError) -> [UInt8] { DumpPayload.encode(libraries: try current().sorted.map(\.text)) }

    /// Makes a change, unless it throws. May block.
    private func change(_ body: (inout State) throws(CommandError) -> Void) throws(CommandError) {
        if let defect { throw defect }
        try changing.withLock { () throws(CommandError) in
            let former = lock.withLock { state }
            var next = former
            try body(&next)
            // With a limit that was higher before, there may be more; then it may become less.
            guard next.byteCount <= max(bytesMax, former.byteCount) else {
                throw CommandError(
                    "ERR libraries of functions take \(bytesMax) bytes at most (--max-scripts): "
                        + "FUNCTION DELETE makes room")
            }
            let payload = DumpPayload.encode(libraries: next.sorted.map(\.text))
            do throws(LarderError) {
                try ledger.set(Self.factName, to: payload)
            } catch {
                throw CommandError(
                    "ERR the libraries of functions could not be stored, nothing was changed: \(error.message)")
            }
            lock.withLock { state = next }
        }
    }

    /// Makes a library of a text: compiles it, and asks it for its functions.
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
