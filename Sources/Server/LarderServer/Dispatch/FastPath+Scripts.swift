import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The fast path of EVAL, EVALSHA and FCALL. For scripts with few keys, whose entries are all in memory, and that call
/// only ``QuickCommands``. For other scripts, nothing is changed, and the handler runs them.
extension FastPath {
    /// The most arguments that a script on this path may have, including its keys.
    private static let scriptWordsMax = 64

    func runScript(_ arguments: RequestArguments, _ source: ScriptSource, _ now: Int64) -> Bool {
        guard let number = parseInteger(arguments[2]), number >= 0,
            number <= min(QuickCommands.keysMax, arguments.count - ScriptCall.firstKey),
            arguments.count - ScriptCall.firstKey <= Self.scriptWordsMax,
            let script = script(arguments[1], source),
            !script.isUnusual.load(ordering: .relaxed), !script.flags.noWrites, !server.pipeline.isCongested
        else { return false }
        guard let interpreter = server.scripts.takeIdle() else { return false }
        defer { server.scripts.give(interpreter) }
        guard interpreter.knows(script) else { return false }
        return run(script, source.row, in: interpreter, arguments, keyCount: Int(number), now)
    }

    /// Returns the script that a word identifies; nil if it is unknown.
    private func script(_ word: UnsafeRawBufferPointer, _ source: ScriptSource) -> Script? {
        switch source {
        // Look up only short texts. Computing the hash of a long one would delay the event loop.
        case .text:
            word.count <= Self.scriptTextMax ? server.scripts.find(ScriptDigest(of: word)) : nil
        case .digest: ScriptDigest(hexadecimal: word).flatMap { server.scripts.find($0) }
        case .function: server.functions.find(word)
        }
    }

    private static let scriptTextMax = 4096

    private func run(
        _ script: Script, _ row: CommandMetadata, in interpreter: Interpreter, _ arguments: RequestArguments,
        keyCount: Int, _ now: Int64
    ) -> Bool {
        let count = arguments.count - ScriptCall.firstKey
        let isDone = withUnsafeTemporaryAllocation(of: larder_script_word.self, capacity: Self.scriptWordsMax) {
            words in
            let quick = interpreter.quick
            quick.begin(session.clock, server.access, generation: session.rights.generation, client: session.id)
            for index in 0..<count {
                let word = arguments[ScriptCall.firstKey + index]
                words[index] = larder_script_word(word)
                if index < keyCount, !quick.commands.add(word) { return false }
            }
            let words = UnsafeBufferPointer(rebasing: words[..<count])
            let (version, bytesMax, replies) = (
                session.replyMemory.pointee.version, min(server.limits.replyBytesMax, server.limits.scriptMemoryMax),
                session.replyMemory
            )
            return replyFromMemory { database, ticket in
                database.withBatch(quick.commands.entries, now: now, ticket: &ticket) { _ in
                    let reply = interpreter.runQuickly(
                        script, words: words, keyCount: keyCount, version: version, replyBytesMax: bytesMax)
                    guard let reply else {
                        script.isUnusual.store(true, ordering: .relaxed)
                        return false
                    }
                    let start = replies.pointee.count
                    replies.pointee.raw(reply)
                    noteScriptError(row, from: start)
                    return true
                }
            }
        }
        guard isDone else { return false }
        for row in interpreter.quick.rows { accounting.counter.ran(row.number, times: 1, nanosecondsEach: 0) }
        server.scripts.counts.runs.wrappingAdd(1, ordering: .relaxed)
        return true
    }

    /// Counts the reply of a script if it is an error.
    private func noteScriptError(_ row: CommandMetadata, from offset: Int) {
        replies.pointee.withBytes { bytes in
            guard bytes.count > offset, bytes[offset] == UInt8(ascii: "-") else { return }
            accounting.counter.failed(row.number)
            server.errors.count(CommandError(encoded: UnsafeRawBufferPointer(rebasing: bytes[offset...])).bytes)
        }
    }
}
