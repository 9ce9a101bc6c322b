import LarderEngine
import LarderPlatform
import LarderRESP

/// FUNCTION and its subcommands. A subcommand that changes libraries writes to disk, so its work is deferred.
enum FunctionCommands {
    @Sendable static func load(_ call: inout Call) throws(CommandError) -> Outcome {
        let last = call.count - 1
        for index in 2..<last where !call.isWord(index, "REPLACE") {
            throw CommandError("ERR Unknown option given: ", shown(call.bytes(index), 128), "")
        }
        let (text, replaces, functions) = (Array(call.bytes(last)), call.count > 3, call.server.functions)
        let writer = call.session.logName
        return .deferred { (reply) throws(CommandError) in
            reply.bulk(try functions.load(text, replaces: replaces, by: writer))
            return nil
        }
    }

    @Sendable static func delete(_ call: inout Call) throws(CommandError) -> Outcome {
        let (name, functions) = (call.text(2), call.server.functions)
        return .deferred { (reply) throws(CommandError) in
            try functions.delete(name)
            reply.simple("OK")
            return nil
        }
    }

    @Sendable static func flush(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 3 else { throw tooManyWords(call) }
        guard call.count == 2 || call.isWord(2, "SYNC") || call.isWord(2, "ASYNC") else {
            throw CommandError("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
        }
        let functions = call.server.functions
        return .deferred { (reply) throws(CommandError) in
            try functions.flush()
            reply.simple("OK")
            return nil
        }
    }

    @Sendable static func kill(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.server.scripts.kill(functions: true) > 0 else {
            throw CommandError("NOTBUSY No scripts in execution right now.")
        }
        return call.ok()
    }

    @Sendable static func list(_ call: inout Call) throws(CommandError) -> Outcome {
        var pattern: GlobPattern?
        var withCode = false
        var index = 2
        while index < call.count {
            if !withCode, call.isWord(index, "WITHCODE") {
                withCode = true
            } else if pattern == nil, call.isWord(index, "LIBRARYNAME") {
                index += 1
                guard index < call.count else { throw CommandError("ERR library name argument was not given") }
                pattern = GlobPattern(lowercased(call.bytes(index)))
            } else {
                throw CommandError("ERR Unknown argument ", shown(call.bytes(index), 128), "")
            }
            index += 1
        }
        let all = try call.server.functions.current().sorted.filter { library in
            pattern?.matches(Array(library.name.lowercased().utf8)) ?? true
        }
        call.session.replies.array(count: all.count)
        for library in all { write(library, withCode: withCode, to: call.session) }
        return .done
    }

    private static func write(_ library: FunctionLibrary, withCode: Bool, to session: Session) {
        session.replies.map(count: withCode ? 4 : 3)
        session.replies.field("library_name", library.name)
        session.replies.field("engine", "LUA")
        session.replies.bulk("functions")
        session.replies.array(count: library.functions.count)
        for function in library.functions {
            session.replies.map(count: 3)
            session.replies.field("name", function.name)
            session.replies.bulk("description")
            session.replies.word(function.description)
            session.replies.bulk("flags")
            session.replies.set(count: function.flagNames.count)
            for name in function.flagNames { session.replies.simple(name) }
        }
        guard withCode else { return }
        session.replies.bulk("library_code")
        session.replies.bulk(library.text)
    }

    @Sendable static func stats(_ call: inout Call) throws(CommandError) -> Outcome {
        let libraries = try call.server.functions.current()
        let session = call.session
        session.replies.map(count: 2)
        session.replies.bulk("running_script")
        if let running = call.server.scripts.runningFunction {
            session.replies.map(count: 3)
            session.replies.bulk("name")
            session.replies.bulk(running.name)
            session.replies.bulk("command")
            session.replies.array(count: running.words.count)
            for word in running.words { session.replies.bulk(word) }
            session.replies.field("duration_ms", (MonotonicClock.nanoseconds() - running.begin) / 1_000_000)
        } else {
            session.replies.null()
        }
        session.replies.bulk("engines")
        session.replies.map(count: 1)
        session.replies.bulk("LUA")
        session.replies.map(count: 2)
        session.replies.field("libraries_count", libraries.libraries.count)
        session.replies.bulk("functions_count")
        return call.reply(libraries.functionCount)
    }

    @Sendable static func dump(_ call: inout Call) throws(CommandError) -> Outcome {
        let functions = call.server.functions
        return .deferred { (reply) throws(CommandError) in
            reply.bulk(try functions.dump())
            return nil
        }
    }

    @Sendable static func restore(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 4 else { throw tooManyWords(call) }
        let policies: [(StaticString, FunctionLibraries.RestorePolicy)] = [
            ("FLUSH", .flush), ("APPEND", .append), ("REPLACE", .replace),
        ]
        var policy = FunctionLibraries.RestorePolicy.append
        if call.count == 4 {
            guard let found = policies.first(where: { call.isWord(3, $0.0) }) else {
                throw CommandError("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
            }
            policy = found.1
        }
        let (payload, functions) = (Array(call.bytes(2)), call.server.functions)
        let writer = call.session.logName
        return .deferred { [policy] (reply) throws(CommandError) in
            try functions.restore(payload, policy, by: writer)
            reply.simple("OK")
            return nil
        }
    }

    private static func tooManyWords(_ call: Call) -> CommandError {
        CommandError(
            "ERR unknown subcommand or wrong number of arguments for '", shown(call.bytes(1), 128),
            "'. Try FUNCTION HELP.")
    }

    private static func lowercased(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        bytes.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }
    }
}
