import CLarderLuaBridge
import LarderRESP
import LarderVocabulary

/// A Lua interpreter with the scripts that it has compiled. Scripts leave nothing behind in it.
///
/// Used by one thread at a time; ``Interpreters`` hands it out. `@unchecked Sendable`, because it is passed from one
/// thread to the next as a value.
final class Interpreter: @unchecked Sendable {
    private let state: OpaquePointer
    /// The compiled texts, by number.
    private var functions: [Int: Int32] = [:]
    /// For short scripts on an event loop.
    let quick = QuickScriptHost()
    private let quickFunctions: UnsafeMutablePointer<larder_script_host>
    /// Which scripts it may know: see ``ScriptCache/generation``.
    let generation: Int

    /// With more compiled scripts a new interpreter begins: those that are no longer kept are not forgotten one by one.
    private let functionsMax: Int
    private let bytesMax: Int

    /// Nil without memory.
    init?(bytesMax: Int, functionsMax: Int, generation: Int) {
        guard
            let state = larder_script_create(
                bytesMax, .random(in: 0 ... .max), Version.redis, Version.redisNumber)
        else { return nil }
        self.state = state
        self.generation = generation
        self.functionsMax = functionsMax
        self.bytesMax = bytesMax
        quickFunctions = .allocate(capacity: 1)
        quickFunctions.initialize(to: quick.functions)
    }

    deinit {
        larder_script_destroy(state)
        quickFunctions.deallocate()
    }

    /// Whether it may run other scripts. One that has grown, by what scripts left to the collector or by compiled texts,
    /// would be kept for nothing, and its next script would have less memory than it may have.
    var isReusable: Bool {
        !larder_script_is_spoilt(state) && functions.count <= functionsMax && byteCount <= bytesMax / 4
    }

    /// The memory of the interpreter.
    var byteCount: Int { larder_script_bytes(state) }

    /// Compiles a text, unless it has been.
    func compile(_ code: ScriptCode) throws(CommandError) -> Int32 {
        if let function = functions[code.number] { return function }
        let function = code.body.withUnsafeBufferPointer {
            larder_script_compile(state, $0.baseAddress, $0.count, code.isLibrary)
        }
        guard function >= 0 else { throw CommandError(encoded: output) }
        functions[code.number] = function
        return function
    }

    /// How a run ended, and its encoded reply.
    enum End {
        /// Valid until the next call.
        case replied(UnsafeRawBufferPointer)
        /// The host ended it with this number.
        case ended(Int32)
    }

    /// Runs a script.
    /// - Parameters:
    ///   - words: the keys, and behind them the arguments.
    ///   - keyCount: how many of the words are keys.
    func run(
        _ script: Script, words: UnsafeBufferPointer<larder_script_word>, keyCount: Int, version: RESPVersion,
        replyBytesMax: Int, host: larder_script_host
    ) throws(CommandError) -> End {
        let function = try compile(script.code)
        return withUnsafePointer(to: host) {
            run(function, script, words, keyCount, version, replyBytesMax, $0)
        }
    }

    /// Runs a script with ``quick``, which has been prepared.
    /// - Returns: nil if the script is not compiled here yet, or has given up.
    func runQuickly(
        _ script: Script, words: UnsafeBufferPointer<larder_script_word>, keyCount: Int, version: RESPVersion,
        replyBytesMax: Int
    ) -> UnsafeRawBufferPointer? {
        guard let function = functions[script.code.number] else { return nil }
        switch run(function, script, words, keyCount, version, replyBytesMax, quickFunctions) {
        case .replied(let reply): return reply
        case .ended: return nil
        }
    }

    /// Whether a script is compiled here.
    func knows(_ script: Script) -> Bool { functions[script.code.number] != nil }

    private func run(
        _ function: Int32, _ script: Script, _ words: UnsafeBufferPointer<larder_script_word>, _ keyCount: Int,
        _ version: RESPVersion, _ replyBytesMax: Int, _ host: UnsafePointer<larder_script_host>
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

    /// The longest error of a library that is loaded.
    private static let errorBytesMax = 1 << 20

    /// Runs a library, so that it registers its functions.
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
    /// An encoded error reply.
    init(encoded reply: UnsafeRawBufferPointer) {
        bytes = Array(reply.dropFirst().dropLast(2))
    }
}
