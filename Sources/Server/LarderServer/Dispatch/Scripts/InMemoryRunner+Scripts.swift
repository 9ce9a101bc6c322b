import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// EVAL, EVALSHA and FCALL for scripts with few keys, whose entries are all in memory: see ``QuickScript``. For other
/// scripts, nothing is done, and ``ScriptHost`` runs them.
extension InMemoryRunner {
    /// The maximum number of arguments of a script that runs here, including its keys.
    private static let scriptWordsMax = 64

    /// Runs the script of the current command.
    func runScript(
        _ source: ScriptSource, _ row: CommandMetadata, _ arguments: RequestArguments, _ now: Int64
    ) -> Bool {
        guard arguments.count >= ScriptCall.firstKey, let number = parseInteger(arguments[2]), number >= 0,
            number <= min(QuickScript.keysMax, arguments.count - ScriptCall.firstKey),
            arguments.count - ScriptCall.firstKey <= Self.scriptWordsMax,
            let script = script(arguments[1], source),
            !script.isUnusual.load(ordering: .relaxed), script.noWrites != true
        else { return false }
        guard let interpreter = server.scripts.takeIdle() else { return false }
        defer { server.scripts.give(interpreter) }
        guard interpreter.knows(script) else { return false }
        return withUnsafeTemporaryAllocation(of: Int32.self, capacity: QuickScript.callsMax) { calls in
            var quick = QuickScript(session, recording: calls)
            defer { quick.end() }
            guard run(&quick, script, row, in: interpreter, arguments, keyCount: Int(number), now) else {
                return false
            }
            quick.forEachCall { accounting.counter.ran($0, times: 1, nanosecondsEach: 0) }
            server.scripts.counts.runs.wrappingAdd(1, ordering: .relaxed)
            return true
        }
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
        _ quick: inout QuickScript, _ script: Script, _ row: CommandMetadata, in interpreter: Interpreter,
        _ arguments: RequestArguments, keyCount: Int, _ now: Int64
    ) -> Bool {
        let count = arguments.count - ScriptCall.firstKey
        let (version, replies) = (session.replyMemory.pointee.version, session.replyMemory)
        let bytesMax = min(server.limits.replyBytesMax, server.limits.scriptMemoryMax)
        return withUnsafeTemporaryAllocation(of: larder_script_word.self, capacity: Self.scriptWordsMax) {
            words in
            for index in 0..<count {
                let word = arguments[ScriptCall.firstKey + index]
                words[index] = larder_script_word(word)
                if index < keyCount, !quick.entries.add(word) { return false }
            }
            let words = UnsafeBufferPointer(rebasing: words[..<count])
            return replyFromMemory { database, ticket in
                database.withBatch(quick.entries, now: now, ticket: &ticket) { _ in
                    let end = quick.withFunctions { host in
                        try? interpreter.run(
                            script, words: words, keyCount: keyCount, version: version, replyBytesMax: bytesMax,
                            host: host)
                    }
                    guard case .replied(let reply)? = end else {
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
    }

    /// Counts the reply of a script if it is an error.
    private func noteScriptError(_ row: CommandMetadata, from offset: Int) {
        session.replyMemory.pointee.withBytes { bytes in
            guard bytes.count > offset, bytes[offset] == UInt8(ascii: "-") else { return }
            accounting.counter.failed(row.number)
            server.errors.count(CommandError(encoded: UnsafeRawBufferPointer(rebasing: bytes[offset...])).bytes)
        }
    }
}
