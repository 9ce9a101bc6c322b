import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// The commands that a short script can call on the fast path: ``QuickCommands`` on its declared keys, in memory. Any
/// other call abandons the attempt before anything is applied, and the script starts again on the usual path.
///
/// Belongs to an interpreter, and is used with it by one thread at a time.
final class QuickScriptHost {
    let commands = QuickCommands(entries: Update())
    /// The commands that ran, for the counters. Commands beyond the limit are not counted.
    private(set) var rows: [CommandMetadata] = []
    /// The access rules, and their generation when the script was allowed to run all of these commands. If the rules
    /// change, the usual path checks each call.
    private var access: AccessControl?
    private var generation = 0
    /// The time of the interpreter's first check whether to continue, in nanoseconds of the monotonic clock; 0 before.
    private var begin: Int64 = 0

    private static let rowsMax = 64

    /// Prepares for a script.
    /// - Parameter generation: the ``AccessControl/generation`` of the rules that allow all commands here.
    func begin(_ access: AccessControl, generation: Int) {
        self.access = access
        self.generation = generation
        rows.removeAll(keepingCapacity: true)
        begin = 0
        commands.entries.end()
    }

    /// The callbacks for the interpreter. Valid as long as this object exists.
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

    /// Runs a command.
    /// - Returns: false if it is left to the usual path.
    private func call(
        _ words: UnsafePointer<larder_script_word>, _ count: Int, _ answer: inout larder_script_answer
    ) -> Bool {
        guard access?.generation.load(ordering: .acquiring) == generation else { return false }
        guard let row = commands.call(UnsafeBufferPointer(start: words, count: count), &answer) else { return false }
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
