import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// The callbacks of a script on the fast path. The script can only call ``QuickCommands``, only with declared keys, and
/// only if the keys' entries are in memory. Any other call stops the script: none of its changes are applied, and it
/// starts again on the usual path.
///
/// Each object belongs to an interpreter, which only one thread uses at a time.
final class QuickScriptHost {
    let commands = QuickCommands(entries: Update())
    /// The commands that have run, for the statistics. At most `rowsMax` of them are recorded.
    private(set) var rows: [CommandMetadata] = []
    /// The access rules, and their generation when it was checked that the user may run all ``QuickCommands``. If the
    /// rules have changed, the script starts again on the usual path, which checks each call.
    private var access: AccessControl?
    private var generation = 0
    private var clock: Unmanaged<EngineTime>?
    /// When the interpreter first called the callback `interrupt`, in nanoseconds of the monotonic clock; 0 if it has
    /// not yet.
    private var begin: Int64 = 0

    private static let rowsMax = 64

    /// Prepares this object for the next script.
    /// - Parameters:
    ///   - generation: the ``AccessControl/generation`` in which the user may run all ``QuickCommands``.
    ///   - client: the client that is recorded with the script's changes.
    func begin(_ clock: EngineTime, _ access: AccessControl, generation: Int, client: Int64) {
        self.clock = .passUnretained(clock)
        self.access = access
        self.generation = generation
        rows.removeAll(keepingCapacity: true)
        begin = 0
        commands.entries.end()
        commands.entries.origin.client = client
    }

    /// The callbacks for the interpreter. They are valid as long as this object exists.
    var functions: larder_script_host {
        larder_script_host(
            context: Unmanaged.passUnretained(self).toOpaque(),
            call: { context, words, count, _, answer in
                guard let context, let words, let answer else { return ScriptEnding.abandoned.rawValue }
                let isDone = Unmanaged<QuickScriptHost>.fromOpaque(context)._withUnsafeGuaranteedRef {
                    $0.call(words, count, &answer.pointee)
                }
                return isDone ? 0 : ScriptEnding.abandoned.rawValue
            },
            interrupt: { context in
                guard let context else { return 0 }
                let mustEnd = Unmanaged<QuickScriptHost>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.isTooLong }
                return mustEnd ? ScriptEnding.abandoned.rawValue : 0
            },
            weigh: { _ in ScriptEnding.abandoned.rawValue },
            log: { _, _, _, _ in },
            knows: larder_script_host.knowsCommand, sha1: larder_script_host.hashesText)
    }

    private var isTooLong: Bool {
        let time = MonotonicClock.nanoseconds()
        if begin == 0 { begin = time }
        return time - begin > ScriptSlice.onLoop
    }

    /// Runs a command that the script has called.
    /// - Returns: false if the script must start again on the usual path.
    private func call(
        _ words: UnsafePointer<larder_script_word>, _ count: Int, _ answer: inout larder_script_answer
    ) -> Bool {
        guard access?.generation.load(ordering: .acquiring) == generation else { return false }
        guard let clock else { return false }
        let words = ScriptWords(words: words, count: count, now: commands.entries.now, clock: clock)
        let name = ShortWord(words.bytes(0))
        guard let row = QuickCommands.row(name), commands.call(name, row, words, &answer) else { return false }
        if rows.count < Self.rowsMax { rows.append(row) }
        return true
    }
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
