import CLuaBridge
import LarderVocabulary
import RESP

/// A Lua interpreter with the scripts that it has compiled. Scripts leave nothing behind in it.
///
/// Used by one thread at a time; ``Interpreters`` hands it out. `@unchecked Sendable`, because it is passed from one
/// thread to the next as a value.
final class Interpreter: @unchecked Sendable {
    private let state: OpaquePointer
    /// The compiled scripts, by number.
    private var functions: [Int: Int32] = [:]
    /// Which scripts it may know: see ``ScriptCache/generation``.
    let generation: Int

    /// More compiled scripts than are kept are not held on to: then a new interpreter begins.
    private static let functionsMax = 2 * ScriptCache.evaluatedMax

    /// Nil without memory.
    init?(bytesMax: Int, generation: Int) {
        guard let state = larder_script_create(
            bytesMax, .random(in: 0 ... .max), Version.redis, Version.redisNumber)
        else { return nil }
        self.state = state
        self.generation = generation
    }

    deinit { larder_script_destroy(state) }

    /// Whether it may run other scripts.
    var isReusable: Bool { !larder_script_is_spoilt(state) && functions.count <= Self.functionsMax }

    /// The memory of the interpreter.
    var byteCount: Int { larder_script_bytes(state) }

    /// Compiles a script, unless it has been.
    func compile(_ script: Script) throws(CommandError) -> Int32 {
        if let function = functions[script.number] { return function }
        let function = script.body.withUnsafeBufferPointer {
            larder_script_compile(state, $0.baseAddress, $0.count)
        }
        guard function >= 0 else { throw CommandError(encoded: output) }
        functions[script.number] = function
        script.isCompiled.store(true, ordering: .relaxed)
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
        let function = try compile(script)
        let end = script.name.withUnsafeBufferPointer { name in
            withUnsafePointer(to: host) { host in
                var job = larder_script_job()
                job.function = function
                job.name = name.baseAddress
                job.keys = words.baseAddress
                job.key_count = keyCount
                job.arguments = words.baseAddress.map { $0 + keyCount }
                job.argument_count = words.count - keyCount
                job.protocol = Int32(version.rawValue)
                job.reply_bytes_max = replyBytesMax
                job.host = host
                return larder_script_run(state, &job)
            }
        }
        if end == LARDER_SCRIPT_ENDED { return .ended(larder_script_ending(state)) }
        return .replied(output)
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
