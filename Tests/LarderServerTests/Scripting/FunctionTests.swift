import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of function libraries: how they are stored, how they run, and how errors in their file are reported.
@Suite struct FunctionTests {
    private static func library(_ body: String, name: String = "lib", function: String = "f") -> String {
        "#!lua name=\(name)\nredis.register_function('\(function)', function(keys, args) \(body) end)"
    }

    private static func load(_ call: TestClient, _ text: String) -> String {
        call(["FUNCTION", "LOAD", "REPLACE", text])
    }

    // MARK: How they run

    /// Calls a function that compares and deletes, with the fast path and without it.
    @Test(arguments: [true, false]) func fcallRunsAFunctionThatReadsAndRemovesAKey(isFast: Bool) throws {
        let server = try SocketlessServer()
        let call = server.connect()
        call.session.prechecks.areUsed = isFast
        let unlock = "if redis.call('get',keys[1]) == args[1] then return redis.call('del',keys[1]) else return 0 end"
        #expect(Self.load(call, Self.library(unlock)) == Wire.bulk("lib"))
        _ = call("SET a 1")
        #expect(call("FCALL f 1 a 2") == Wire.int(0))
        #expect(call("FCALL f 1 a 1") == Wire.int(1))
        #expect(call("FCALL F 1 a 1") == Wire.int(0))
        #expect(call("EXISTS a") == Wire.int(0))
        #expect(call("INFO commandstats").contains("cmdstat_fcall:calls=3,"))
        #expect(try server.state.functions.find("f")?.needsTransaction.load(ordering: .relaxed) == false)
    }

    /// Values in a library's local variables are lost after each call, on every interpreter, and scripts do not see
    /// them.
    @Test func functionsKeepNoStateBetweenCalls() throws {
        let call = try SocketlessServer().connect()
        _ = Self.load(
            call,
            "#!lua name=lib\nlocal n = 0 local t = {} redis.register_function('f', function() n = n + 1 "
                + "table.insert(t, n) return {n, #t} end)")
        for _ in 0..<3 { #expect(call("FCALL f 0") == Wire.array(Wire.int(1), Wire.int(1))) }
        #expect(
            call(["EVAL", "return {type(KEYS), type(redis.call), tostring(redis.register_function)}", "1", "x"])
                == Wire.array(Wire.bulk("table"), Wire.bulk("function"), Wire.bulk("nil")))
        _ = Self.load(call, Self.library("return KEYS[1]"))
        #expect(call("FCALL f 1 x").contains("nonexistent global variable 'KEYS'"))
    }

    /// A slow function continues without locks. FUNCTION KILL stops it, SCRIPT KILL does not.
    @Test func longRunningFunctionsAreShownAndKilled() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 600_000
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let (busy, other) = (try server.connect(), try server.connect())
        let text = Self.library("redis.call('set','a','never') while true do end")
        #expect(String(decoding: try other.call(["FUNCTION", "LOAD", text]), as: UTF8.self) == Wire.bulk("lib"))
        try busy.send(encodeRequest(["FCALL", "f", "1", "a", "word"]))
        while !(try other.call("INFO larder").contains("scripts_running:1\r\n")) { nap() }
        let stats = try other.call("FUNCTION STATS")
        for part in ["running_script", "word", "duration_ms", "libraries_count"] { #expect(stats.contains(part)) }
        #expect(try other.call("SCRIPT KILL") == Wire.error("NOTBUSY No scripts in execution right now."))
        #expect(try other.call("FUNCTION KILL") == Wire.ok)
        #expect(String(decoding: try busy.receive(), as: UTF8.self).hasPrefix("-ERR Script killed by user"))
        #expect(try other.call("EXISTS a") == Wire.int(0))
        #expect(try other.call("FUNCTION STATS").contains("running_script\r\n$-1"))
    }

    @Test func aLibraryThatRunsTooLongIsNotLoaded() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(
            Self.load(call, "#!lua name=lib\nwhile true do end")
                == Wire.error("ERR Error registering functions: ERR FUNCTION LOAD timeout"))
        let memory = Self.load(call, "#!lua name=lib\nlocal s = 'x' while true do s = s .. s end")
        #expect(memory.contains("--max-script-memory"), "\(memory)")
        #expect(Self.load(call, "#!lua name=lib\n\u{1B}Lua").contains("Error compiling function"))
        #expect(call("FUNCTION LIST") == Wire.array())
        #expect(try FileSystem.read(server.path) == nil, "nothing was written")
        #expect(call(["EVAL", "return 1", "0"]) == Wire.int(1))
    }

    @Test func librariesAreLimited() throws {
        var limits = Limits()
        limits.scriptsBytesMax = 1000
        let call = try SocketlessServer(limits: limits).connect()
        #expect(Self.load(call, Self.library("return 1")) == Wire.bulk("lib"))
        let long = Self.library("return '" + String(repeating: "x", count: 1000) + "'")
        #expect(Self.load(call, long).hasPrefix("-ERR function libraries are limited to 1000 bytes (--max-scripts)"))
        #expect(call("FCALL f 0") == Wire.int(1), "the previous library stays")
    }

    /// If existing libraries exceed a limit that was lowered, libraries can be removed but not added.
    @Test func aLowerLimitAllowsRemovalsOnly() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        for number in 1...3 {
            _ = Self.load(call, Self.library("return 1", name: "lib\(number)", function: "f\(number)"))
        }
        server.engine.shutdown()
        var limits = Limits()
        limits.scriptsBytesMax = 100
        let later = try SocketlessServer(reopening: server, limits: limits).connect()
        #expect(
            Self.load(later, Self.library("return 1", name: "more", function: "g")).hasPrefix(
                "-ERR function libraries are limited"))
        #expect(later("FUNCTION DELETE lib1") == Wire.ok)
        #expect(later("FCALL f2 0") == Wire.int(1))
    }

    /// All calls of a transaction use the same libraries, even if another client replaces them while it runs.
    @Test("a transaction uses one version of a function library") func aTransactionUsesOneVersionOfALibrary() throws {
        let server = try InProcessServer(threads: 2)
        defer { server.stop() }
        @Sendable func text(_ version: Int) -> String { Self.library("return \(version)") }
        _ = try server.connect().call(["FUNCTION", "LOAD", text(0)])
        let isOver = Guarded(false)
        let mixed = Recorder<String>()
        onThreads(2) { thread in
            do {
                let client = try server.connect()
                if thread == 0 {
                    for version in 1...400 {
                        _ = try client.call(["FUNCTION", "LOAD", "REPLACE", text(version % 10)])
                    }
                    isOver.value = true
                } else {
                    while !isOver.value {
                        _ = try client.call("MULTI")
                        for _ in 0..<20 { _ = try client.call("FCALL f 0") }
                        let reply = try client.call("EXEC")
                        if Set(reply.split(separator: "\r\n").dropFirst()).count != 1 { mixed.add(reply) }
                    }
                }
            } catch {
                isOver.value = true
                mixed.add("\(error)")
            }
        }
        #expect(mixed.all == [])
    }

    // MARK: The file

    @Test func librariesSurviveARestart() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = Self.load(call, Self.library("return 1"))
        _ = Self.load(call, Self.library("return 2", name: "other", function: "g"))
        let list = call("FUNCTION LIST WITHCODE")
        _ = call("FLUSHALL")
        server.engine.shutdown()
        let later = try SocketlessServer(reopening: server)
        let again = later.connect()
        #expect(again("FUNCTION LIST WITHCODE") == list)
        #expect(again("FCALL g 0") == Wire.int(2))
        #expect(again("FUNCTION DELETE lib") == Wire.ok)
        later.engine.shutdown()
        let last = try SocketlessServer(reopening: later).connect()
        #expect(last("FCALL f 0") == Wire.error("ERR Function not found"))
        #expect(last("FCALL g 0") == Wire.int(2))
    }

    @Test func aFunctionsFileOfAnEarlierVersionIsMigrated() throws {
        let server = try SocketlessServer()
        server.engine.shutdown()
        try FileSystem.writeFile(
            server.path, DumpPayload.encode(libraries: [Array(Self.library("return 1").utf8)]))
        for _ in 0..<2 {
            let again = try SocketlessServer(reopening: server)
            #expect(again.connect()("FCALL f 0") == Wire.int(1))
            #expect(!FileSystem.exists(server.path))
            again.engine.shutdown()
        }
    }

    /// A file with a changed byte, and a truncated file, are renamed: none of their contents is used, and none is lost.
    @Test func aDamagedFunctionsFileIsRenamedAndNotUsed() throws {
        let server = try SocketlessServer()
        server.engine.shutdown()
        let good = DumpPayload.encode(libraries: [Array(Self.library("return 1").utf8)])
        var damaged = (0..<good.count).map { index in
            var bytes = good
            bytes[index] ^= 1
            return bytes
        }
        damaged += [[], Array(good.dropLast()), Array(good.prefix(5)), good + [0]]
        for bytes in damaged {
            try FileSystem.writeFile(server.path, bytes)
            let again = try SocketlessServer(reopening: server)
            let call = again.connect()
            #expect(call("FUNCTION LIST") == Wire.array())
            let aside = try FileSystem.list(server.larder).filter { $0.hasPrefix("FUNCTIONS.damaged-") }
            #expect(try aside.map { try FileSystem.read(server.larder + "/" + $0) } == [bytes])
            for name in aside { try FileSystem.removeFile(server.larder + "/" + name) }
            again.engine.shutdown()
        }
    }

    /// A file that cannot be read is not replaced by the next change.
    @Test func anUnreadableFunctionsFileIsNotReplaced() throws {
        let server = try SocketlessServer()
        server.engine.shutdown()
        try FileSystem.makeDirectory(server.path)
        let call = try SocketlessServer(reopening: server).connect()
        for reply in [
            call("FUNCTION LIST"), call("FCALL f 0"), call("FUNCTION FLUSH"), Self.load(call, Self.library("return 1")),
        ] {
            #expect(reply.hasPrefix("-ERR the function libraries could not be read"), "\(reply)")
        }
        #expect(call("SET a 1") == Wire.ok)
    }

    /// A library that can no longer be loaded, for example because the limit is lower, is kept.
    @Test func aLibraryThatIsRefusedAtTheStartIsKept() throws {
        let server = try SocketlessServer()
        _ = Self.load(server.connect(), Self.library("return 1"))
        server.engine.shutdown()
        let bad = Array("#!lua name=bad\nx = 1".utf8)
        let good = Array(Self.library("return 1").utf8)
        try FileSystem.writeFile(server.path, DumpPayload.encode(libraries: [bad, good]))
        let again = try SocketlessServer(reopening: server)
        let call = again.connect()
        #expect(call("FCALL f 0") == Wire.int(1))
        #expect(Self.load(call, Self.library("return 2", name: "other", function: "g")) == Wire.bulk("other"))
        #expect(call("FUNCTION LIST WITHCODE").contains("name=bad\nx = 1"))
        #expect(call("FUNCTION DELETE bad") == Wire.ok)
    }

    /// A change that cannot be written to disk has no effect.
    @Test func aChangeThatCannotBeSavedIsRolledBack() throws {
        let isFailing = Guarded(false)
        let server = try SocketlessServer { $0.beforeCommit = failing(while: isFailing) }
        let call = server.connect()
        _ = Self.load(call, Self.library("return 1"))
        isFailing.value = true
        for reply in [
            Self.load(call, Self.library("return 2")), call("FUNCTION DELETE lib"), call("FUNCTION FLUSH"),
        ] {
            #expect(reply.hasPrefix("-ERR the function libraries could not be saved; nothing was changed"))
        }
        #expect(call("FCALL f 0") == Wire.int(1))
    }

    @Test func infoReportsFunctions() throws {
        let call = try SocketlessServer().connect()
        _ = Self.load(call, Self.library("return 1"))
        let info = call("INFO memory")
        #expect(info.contains("number_of_functions:1\r\n") && info.contains("number_of_libraries:1\r\n"))
    }
}

extension SocketlessServer {
    fileprivate var larder: String { directory.path + "/larder" }
    fileprivate var path: String { larder + "/" + FunctionLibraries.fileName }
}

extension FunctionLibraries {
    fileprivate func find(_ name: String) throws -> Script? {
        let libraries = try current()
        return Array(name.utf8).withUnsafeBytes { libraries.find($0) }
    }
}
