import CommandCatalog
import LarderEngine
import RESP

extension CommandTable {
    static let scriptingCommands: Handlers = [
        .eval: { call throws(CommandError) in try ScriptingCommands.run(&call, isDigest: false, isReadOnly: false) },
        .evalRO: { call throws(CommandError) in try ScriptingCommands.run(&call, isDigest: false, isReadOnly: true) },
        .evalsha: { call throws(CommandError) in try ScriptingCommands.run(&call, isDigest: true, isReadOnly: false) },
        .evalshaRO: { call throws(CommandError) in try ScriptingCommands.run(&call, isDigest: true, isReadOnly: true) },
        .scriptLoad: ScriptingCommands.load,
        .scriptExists: ScriptingCommands.exists,
        .scriptFlush: ScriptingCommands.flush,
        .scriptKill: ScriptingCommands.kill,
        .scriptDebug: ScriptingCommands.debug,
    ]
}

enum ScriptingCommands {
    /// Begins a transaction that consists of the script; in one, runs it.
    static func run(_ call: inout Call, isDigest: Bool, isReadOnly: Bool) throws(CommandError) -> Outcome {
        if call.isInTransaction, let own = call.session.transactions.execution?.scriptCall {
            try call.run(own)
            return .done
        }
        let script = try ScriptCall(call, isDigest: isDigest, isReadOnly: isReadOnly)
        if call.isInTransaction { try call.run(script) } else { try call.session.beginScript(script, call) }
        return .done
    }

    @Sendable static func load(_ call: inout Call) throws(CommandError) -> Outcome {
        let script = try call.server.scripts.script(call.bytes(2), isLoaded: true)
        call.session.replies.bulk(script.digest.hexadecimal)
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
        call.session.replies.simple("OK")
        return .done
    }

    @Sendable static func kill(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.server.scripts.kill() > 0 else {
            throw CommandError("NOTBUSY No scripts in execution right now.")
        }
        call.session.replies.simple("OK")
        return .done
    }

    @Sendable static func debug(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.isWord(2, "NO") || call.isWord(2, "YES") || call.isWord(2, "SYNC") else {
            throw CommandError("ERR Use SCRIPT DEBUG YES/SYNC/NO")
        }
        guard call.isWord(2, "NO") else { throw CommandError("ERR there is no debugger for scripts in Larder") }
        call.session.replies.simple("OK")
        return .done
    }
}
