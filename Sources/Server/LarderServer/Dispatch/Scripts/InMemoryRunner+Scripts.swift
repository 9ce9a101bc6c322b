import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// EVAL and similar commands for scripts with few keys, whose entries are all in memory. For other scripts, nothing is
/// done, and a transaction runs them.
extension InMemoryRunner {
    /// The maximum number of keys of a script that runs here.
    private static let scriptKeysMax = 8
    /// The maximum length of a script's text in bytes. Computing the hash of a long text twice would delay the event
    /// loop.
    private static let scriptTextMax = 4096

    /// Runs the script of the current command.
    func runScript(_ words: CallWords, _ row: CommandMetadata) -> Bool {
        guard words.bytes(1).count <= Self.scriptTextMax, let call = try? ScriptCall(words, row, in: nil),
            call.keyCount <= Self.scriptKeysMax, !call.script.needsTransaction.load(ordering: .relaxed),
            let interpreter = try? server.scripts.take()
        else { return false }
        let entries = Update.take()
        defer {
            entries.giveBack()
            server.scripts.give(interpreter)
        }
        for index in 0..<call.keyCount where !entries.add(words.bytes(ScriptCall.firstKey + index)) { return false }
        entries.origin.client = session.prechecks.setOrigin.client
        var host = ScriptHost(session, entries, now: words.now, isReadOnly: call.isReadOnly)
        let isDone = replyFromMemory { database, ticket in
            database.withBatch(entries, now: words.now, ticket: &ticket) { _ in
                guard case .replied(let reply)? = try? host.run(call, words, in: interpreter) else {
                    call.script.needsTransaction.store(true, ordering: .relaxed)
                    return false
                }
                session.replyMemory.pointee.raw(reply)
                if reply.first == UInt8(ascii: "-") {
                    accounting.counter.failed(row.number)
                    server.errors.count(CommandError(encoded: reply).bytes)
                }
                return true
            }
        }
        accounting.endScriptCalls(areCounted: isDone)
        if isDone { server.scripts.counts.runs.wrappingAdd(1, ordering: .relaxed) }
        return isDone
    }
}
