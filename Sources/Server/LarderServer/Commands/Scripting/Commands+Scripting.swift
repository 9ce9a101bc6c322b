import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let scriptingCommands: Handlers = [
        .eval: ScriptingCommands.run,
        .evalRO: ScriptingCommands.run,
        .evalsha: ScriptingCommands.run,
        .evalshaRO: ScriptingCommands.run,
        .fcall: ScriptingCommands.run,
        .fcallRO: ScriptingCommands.run,
        .scriptLoad: ScriptingCommands.load,
        .scriptExists: ScriptingCommands.exists,
        .scriptFlush: ScriptingCommands.flush,
        .scriptKill: ScriptingCommands.kill,
        .scriptDebug: ScriptingCommands.debug,
        .functionLoad: FunctionCommands.load,
        .functionDelete: FunctionCommands.delete,
        .functionFlush: FunctionCommands.flush,
        .functionKill: FunctionCommands.kill,
        .functionList: FunctionCommands.list,
        .functionStats: FunctionCommands.stats,
        .functionDump: FunctionCommands.dump,
        .functionRestore: FunctionCommands.restore,
    ]
}

enum ScriptingCommands {
    /// Runs a script. Outside of a transaction, first begins a transaction with only this script.
    @Sendable static func run(_ call: inout Call) throws(CommandError) -> Outcome {
        guard let row = call.spec else { throw .syntax }
        let execution = call.session.transactions.execution
        let script: ScriptCall
        if let own = execution?.scriptCall {
            script = own
        } else {
            script = try ScriptCall(call.words, row, in: execution)
        }
        if call.isInTransaction {
            try call.run(script)
            return .done
        }
        let words = call
        try call.session.transactions.execute(
            script, row, count: call.count, bytesMax: call.server.limits.transactionBytesMax
        ) { words.bytes($0) }
        return .done
    }

    @Sendable static func load(_ call: inout Call) throws(CommandError) -> Outcome {
        // A user who may not run SCRIPT FLUSH could fill the cache, but not empty it. So scripts of such a user are
        // removed when they are no longer used.
        let mayFlush = call.session.rights.current?.covers(.write, in: nil) ?? true
        let script = try call.server.scripts.script(call.bytes(2), mayFlush ? .untilFlushed : .whileUsed)
        call.session.replies.bulk(script.title)
        return .done
    }

    @Sendable static func exists(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.replies.array(count: call.count - 2)
        for index in 2..<call.count {
            let digest = ScriptDigest(hexadecimal: call.bytes(index))
            call.session.replies.integer(digest.flatMap { call.server.scripts.find($0) } == nil ? 0 : 1)
        }
        return .done
    }

    @Sendable static func flush(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count == 2 || call.count == 3 && (call.isWord(2, "SYNC") || call.isWord(2, "ASYNC")) else {
            throw CommandError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
        }
        call.server.scripts.flush()
        return call.ok()
    }

    @Sendable static func kill(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.server.scripts.kill(functions: false) > 0 else {
            throw CommandError("NOTBUSY No scripts in execution right now.")
        }
        return call.ok()
    }

    @Sendable static func debug(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.isWord(2, "NO") || call.isWord(2, "YES") || call.isWord(2, "SYNC") else {
            throw CommandError("ERR Use SCRIPT DEBUG YES/SYNC/NO")
        }
        guard call.isWord(2, "NO") else { throw CommandError("ERR Larder has no script debugger") }
        return call.ok()
    }
}
