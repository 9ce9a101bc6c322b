import Foundation
import LarderClient
import LarderTestSupport
import Testing

/// Tests of scripts, run by larderd and by redis-server.
@Suite(.timeLimit(.minutes(10))) struct ScriptTests {
    private struct Reader: Codable, Equatable, Sendable {
        var name: String
        var age: Int
    }

    private static let echo = Script("return ARGV[1]")

    @Test(arguments: LiveServer.allCases) func scriptArgumentsArriveUnchanged(_ server: LiveServer) async throws {
        try await server.run { (client: LarderClient) in
            let identifier = UUID()
            let arguments: [(any ScriptArgument, String)] = [
                ("text", "text"), ("text".dropFirst(), "ext"), (-7, "-7"), (UInt64.max, "18446744073709551615"),
                (1.5, "1.5"), (true, "1"), (false, "0"), (identifier, identifier.uuidString),
                (Data("data".utf8), "data"), ([UInt8]("bytes".utf8), "bytes"), ("", ""),
                (ScriptModel(Reader(name: "ana", age: 7)), #"{"name":"ana","age":7}"#), (ScriptModel("as is"), "as is"),
            ]
            for (argument, text) in arguments {
                let reply: String = try await client.script(Self.echo, arguments: [argument])
                #expect(reply == text)
            }
            let bytes: [UInt8] = try await client.script(Self.echo, arguments: [[0, 255, 10] as [UInt8]])
            #expect(bytes == [0, 255, 10])
            let keys: [String] = try await client.script("return {KEYS[2], KEYS[1]}", keys: ["a", 42])
            #expect(keys == ["42", "a"])
        }
    }

    @Test(arguments: LiveServer.allCases)
    func resultsOfScriptsAreConvertedToTheirTypes(_ server: LiveServer) async throws {
        try await server.run { (client: LarderClient) in
            func run<Result: ScriptResult>(_ text: String) async throws -> Result {
                try await client.script(Script(text), keys: ["k"], arguments: [#"{"name":"ana","age":7}"#])
            }
            #expect(try await run("return 7.9") == 7)
            #expect(try await run("return '7'") == 7)
            #expect(try await run("return 255") == UInt8.max)
            #expect(try await run("return '1.5'") == 1.5)
            #expect(try await run("return 1") == true)
            #expect(try await run("return false") == false)
            #expect(try await run("return redis.call('set', KEYS[1], 'v')") == true)
            #expect(try await run("return redis.call('set', KEYS[1], 'v')") == "OK")
            #expect(try await run("return redis.call('get', KEYS[1])") == Data("v".utf8))
            #expect(try await run("return {1, 2, nil, 4}") == [1, 2])
            #expect(
                try await run("return {'a', {'b', false}}") as [RESPValue] == [
                    .bulk([97]), .array([.bulk([98]), .null]),
                ])
            #expect(try await run("return {'a', false}") == ["a", nil] as [String?])
            #expect(try await run("return {{1}, {2, 3}}") == [[1], [2, 3]])
            #expect(try await run("return {'x', 1, 'y', 2}") == ["x": 1, "y": 2])
            #expect(try await run("return nil") as Int? == nil)
            #expect(try await run("return 5") as Int? == 5)
            #expect(try await run("return ARGV[1]") == ScriptModel(Reader(name: "ana", age: 7)))
            let everything = try await client.script("return {1, 'a'}")
            #expect(everything == .array([.integer(1), .bulk([97])]))
        }
    }

    @Test(arguments: LiveServer.allCases)
    func aScriptResultOfTheWrongTypeIsNamedInTheError(_ server: LiveServer) async throws {
        try await server.run { (client: LarderClient) in
            func error<Result: ScriptResult>(_ type: Result.Type, _ text: String) async -> String {
                do throws(LarderClientError) {
                    let value: Result = try await client.script(Script(text))
                    return "\(value)"
                } catch {
                    #expect(error.code == .decode)
                    return error.message
                }
            }
            let start = "the script returned "
            #expect(
                await error(Int.self, "return 'abc'") == start + "a string of 3 bytes, but a whole number was expected")
            #expect(
                await error(Int.self, "return nil") == start + "nothing (nil or false), but a whole number was expected"
            )
            #expect(
                await error(UInt8.self, "return 256") == start
                    + "a whole number, but one between 0 and 255 was expected")
            #expect(await error(String.self, "return 5") == start + "a whole number, but a string was expected")
            #expect(
                await error(String.self, "return '\\255'") == start
                    + "a string of 1 bytes, but one in UTF-8 was expected")
            #expect(
                await error([Int].self, "return {1, 'x'}")
                    == "element 2: " + start + "a string of 1 bytes, but a whole number was expected")
            #expect(await error([Int].self, "return 1") == start + "a whole number, but an array was expected")
            #expect(await error([UInt8].self, "return {1}") == start + "an array of 1, but a string was expected")
            #expect(
                await error(Bool.self, "return 2") == start + "a whole number, but 1, 0, true, false or OK was expected"
            )
            #expect(
                await error(ScriptModel<Reader>.self, "return '{}'").hasPrefix(start + "a string of 2 bytes, which "))
        }
    }

    @Test(arguments: LiveServer.allCases) func errorsOfScriptsArriveWithCodeAndText(_ server: LiveServer) async throws {
        try await server.run { (client: LarderClient) in
            func text(_ text: String, readOnly: Bool = false) async -> String {
                do throws(LarderClientError) {
                    return "\(try await client.script(Script(text), keys: ["k"], readOnly: readOnly))"
                } catch {
                    #expect(error.code == .server)
                    return error.serverText ?? ""
                }
            }
            #expect(await text("return redis.error_reply('MINE too many')") == "MINE too many")
            #expect(await text("return redis.call('incr')").hasPrefix("ERR Wrong number of args"))
            #expect(await text("return +").hasPrefix("ERR Error compiling script"))
            #expect(await text("error('oh')").contains("oh"))
            #expect(
                await text("return redis.call('set', KEYS[1], 1)", readOnly: true).contains(
                    "Write commands are not allowed"))
            #expect(await text("return redis.call('get', KEYS[1])", readOnly: true) == "null")
        }
    }

    /// A script's own error may begin with NOSCRIPT. The client must not conclude that the script is unknown.
    @Test(arguments: LiveServer.allCases) func aScriptsOwnErrorIsNotMistakenForAnUnknownScript(_ server: LiveServer)
        async throws
    {
        try await server.run { (client: LarderClient) in
            let script = Script("redis.call('incr', KEYS[1]) return redis.error_reply('NOSCRIPT of mine')")
            for _ in 0..<3 {
                await #expect(throws: LarderClientError.self) { try await client.script(script, keys: ["n"]) }
            }
            let runs = try await client.cache(of: Int.self).value(forKey: "n")
            #expect(runs == 3)
        }
    }

    @Test(arguments: LiveServer.allCases) func aScriptIsLoadedIfTheServerDoesNotKnowIt(_ server: LiveServer)
        async throws
    {
        try await server.run { (client: LarderClient) in
            func calls(_ command: String) async throws -> Int {
                let text = try await client.serverInfo(section: "commandstats")
                let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("cmdstat_\(command):calls=") }
                return line.flatMap { Int($0.split(separator: "=")[1].prefix { $0.isNumber }) } ?? 0
            }
            // Make the text unique: the process knows the digests of all scripts that other tests have run.
            let script = Script("return redis.call('incr', KEYS[1]) -- \(UInt64.random(in: 0 ... .max))")
            for number in 1...5 { #expect(try await client.script(script, keys: ["n"]) == number) }
            #expect(try await calls("script|load") > 0)
            #expect(try await calls("eval") == 0)
            let loads = try await calls("script|load")
            try await client.command("SCRIPT", "FLUSH")
            #expect(try await client.script(script, keys: ["n"]) == 6)
            let texts = try await calls("eval")
            #expect(texts > 0)
            for number in 7...9 { #expect(try await client.script(script, keys: ["n"]) == number) }
            #expect(try await calls("eval") == texts)
            try await client.command("SCRIPT", "FLUSH")
            let value: Int = try await client.script("return 1 -- read", readOnly: true)
            #expect(value == 1)
            try await client.command("SCRIPT", "FLUSH")
            #expect(try await client.script("return 1 -- read", readOnly: true) == 1)
            #expect(try await calls("eval_ro") > 0)
            #expect(try await calls("eval") == texts)
            #expect(try await calls("script|load") <= loads + loads)
        }
    }

    /// Swift considers the texts of these scripts equal.
    @Test("scripts that differ only in their Unicode normalization are distinguished")
    func scriptsWithTheSameUnicodeTextAreDistinguished() async throws {
        try await LiveServer.larderd.run { (client: LarderClient) in
            let scripts: [(String, [UInt8])] = [
                ("return '\u{E9}'", [0xC3, 0xA9]), ("return 'e\u{301}'", [0x65, 0xCC, 0x81]),
            ]
            for (text, bytes) in scripts {
                let reply: [UInt8] = try await client.script(Script(text))
                #expect(reply == bytes)
            }
        }
    }

    @Test func aBlockingClientCanRunScripts() throws {
        try LiveServer.larderd.run { (socketPath: String) in
            let client = try BlockingLarderClient(socketPath: socketPath, database: "other")
            let script = Script("return redis.call('incrby', KEYS[1], ARGV[1])")
            #expect(try client.script(script, keys: ["n"], arguments: [5]) == 5)
            #expect(try client.script(script, keys: ["n"], arguments: [5]) as RESPValue == .integer(10))
            try client.command("SCRIPT", "FLUSH")
            #expect(try client.script(script, keys: ["n"], arguments: [5]) == 15)
            #expect(try client.value(Int.self, forKey: "n") == 15)
            do throws(LarderClientError) {
                let text: String = try client.script("return 1")
                Issue.record("\(text)")
            } catch {
                #expect(error.code == .decode && error.database == "other" && error.operation == "EVALSHA")
            }
        }
    }

    @Test func readsAfterAScriptReturnItsWrites() async throws {
        try await LiveServer.larderd.run(ClientOptions(nearCache: NearCacheOptions())) { (client: LarderClient) in
            let cache = client.cache("readers", of: Reader.self)
            let store = Script("return redis.call('set', KEYS[1], ARGV[1])")
            for age in 0..<50 {
                let reader = Reader(name: "ana", age: age)
                let isStored: Bool = try await cache.script(store, keys: ["ana"], arguments: [ScriptModel(reader)])
                #expect(isStored)
                #expect(try await cache.value(forKey: "ana") == reader)
            }
            #expect(try await client.cache(of: Reader.self).value(forKey: "ana") == nil)
        }
    }

    @Test func aScriptArgumentThatCannotBeEncodedIsNamed() async throws {
        try await LiveServer.larderd.run { (client: LarderClient) in
            do throws(LarderClientError) {
                try await client.script(Self.echo, arguments: ["x", ScriptModel(["a": Double.nan])])
                Issue.record("it was sent")
            } catch {
                #expect(
                    error.code == .encode && error.message.hasPrefix("argument 2 of the script cannot be encoded: "))
            }
        }
    }
}
