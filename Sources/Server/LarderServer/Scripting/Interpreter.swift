import CLarderLuaBridge
import LarderCommandCatalog
import LarderRESP
import LarderVocabulary

/// A Lua interpreter, and the scripts that it has compiled. A script cannot leave any state for the next script.
///
/// `@unchecked Sendable`: ``ScriptCache`` lends an interpreter to only one thread at a time.
final class Interpreter: @unchecked Sendable {
    private let state: OpaquePointer
    /// The compiled scripts: the key is a script's ``ScriptCode/number``, the value its number in this interpreter.
    private var functions: [Int: Int32] = [:]
    /// The ``ScriptCache/generation`` in which the interpreter was created. SCRIPT FLUSH begins a new generation.
    let generation: Int

    /// The maximum number of compiled scripts. An interpreter with more scripts is replaced, because it cannot remove
    /// scripts.
    private let functionsMax: Int
    private let bytesMax: Int

    /// Creates an interpreter.
    /// - Returns: nil if there is not enough memory.
    init?(bytesMax: Int, functionsMax: Int, generation: Int) {
        guard
            let state = larder_script_create(
                bytesMax, .random(in: 0 ... .max), Version.redis, Version.redisNumber)
        else { return nil }
        self.state = state
        self.generation = generation
        self.functionsMax = functionsMax
        self.bytesMax = bytesMax
    }

    deinit { larder_script_destroy(state) }

    /// Whether the interpreter may run more scripts; false if garbage or compiled scripts use too much of its memory.
    var isReusable: Bool {
        !larder_script_is_spoilt(state) && functions.count <= functionsMax && byteCount <= bytesMax / 4
    }

    /// The memory that the interpreter uses, in bytes.
    var byteCount: Int { larder_script_bytes(state) }

    /// Compiles a script, unless that was done before.
    /// - Returns: the interpreter's number of the compiled script.
    func compile(_ code: ScriptCode) throws(CommandError) -> Int32 {
        if let function = functions[code.number] { return function }
        let function = code.body.withUnsafeBufferPointer {
            larder_script_compile(state, $0.baseAddress, $0.count, code.isLibrary)
        }
        guard function >= 0 else { throw CommandError(encoded: output) }
        functions[code.number] = function
        return function
    }

    /// How a script has ended.
    enum End {
        /// The script has replied. The bytes are its encoded reply, and are valid until the next call.
        case replied(UnsafeRawBufferPointer)
        /// A callback has stopped the script. The number is the raw value of the ``ScriptEnding`` that the callback
        /// returned.
        case ended(Int32)
    }

    /// Runs a compiled script.
    /// - Parameters:
    ///   - function: the interpreter's number of the compiled script.
    ///   - words: the keys, followed by the arguments.
    ///   - keyCount: the number of keys.
    func run(
        _ function: Int32, of script: Script, _ words: UnsafeBufferPointer<larder_script_word>, _ keyCount: Int,
        _ version: RESPVersion, replyBytesMax: Int, _ host: UnsafePointer<larder_script_host>
    ) -> End {
        let end = script.name.withUnsafeBufferPointer { name in
            var job = larder_script_job()
            job.function = function
            job.name = name.baseAddress
            job.called = script.code.isLibrary ? name.baseAddress : nil
            job.keys = words.baseAddress
            job.key_count = keyCount
            job.arguments = words.baseAddress.map { $0 + keyCount }
            job.argument_count = words.count - keyCount
            job.protocol = Int32(version.rawValue)
            job.reply_bytes_max = replyBytesMax
            job.host = host
            return larder_script_run(state, &job)
        }
        if end == LARDER_SCRIPT_ENDED { return .ended(larder_script_ending(state)) }
        return .replied(output)
    }

    /// The maximum length of a library's error message, in bytes.
    private static let errorBytesMax = 1 << 20

    /// Runs the code of a library, which registers the library's functions.
    func register(_ library: ScriptCode, _ registration: LibraryRegistration) throws(CommandError) {
        let function = try compile(library)
        let end = withUnsafePointer(to: registration.host) { host in
            var job = larder_script_job()
            job.function = function
            job.reply_bytes_max = Self.errorBytesMax
            job.host = host
            return "FUNCTION LOAD".withCString { name in
                job.name = name
                return larder_script_register(
                    state, &job, Unmanaged.passUnretained(registration).toOpaque(), LibraryRegistration.add)
            }
        }
        if end == LARDER_SCRIPT_ENDED {
            throw CommandError("ERR Error registering functions: ERR FUNCTION LOAD timeout")
        }
        if !output.isEmpty { throw CommandError(encoded: output) }
    }

    private var output: UnsafeRawBufferPointer {
        var count = 0
        let start = larder_script_output(state, &count)
        return UnsafeRawBufferPointer(start: start, count: count)
    }
}

extension CommandError {
    /// Creates an error from its encoded reply.
    init(encoded reply: UnsafeRawBufferPointer) { bytes = Array(reply.dropFirst().dropLast(2)) }
}

extension larder_script_word {
    init(_ word: UnsafeRawBufferPointer) {
        self.init(bytes: word.baseAddress?.assumingMemoryBound(to: UInt8.self), count: word.count)
    }
}

extension UnsafeRawBufferPointer {
    init(_ word: larder_script_word) { self.init(start: word.bytes, count: word.count) }
}

extension larder_script_host {
    static let knowsCommand: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<UInt8>?, Int) -> Bool = {
        _, name, count in
        CommandMetadata.named(Array(UnsafeRawBufferPointer(start: name, count: count))) != nil
    }

    static let hashesText: @convention(c) (UnsafePointer<UInt8>?, Int, UnsafeMutablePointer<CChar>?) -> Void = {
        bytes, count, digits in
        ScriptDigest(of: UnsafeRawBufferPointer(start: bytes, count: count)).write(to: digits)
    }
}
