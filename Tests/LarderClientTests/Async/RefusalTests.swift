import Foundation
import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of calls that the client refuses, if possible before it sends anything, and of the error messages.
@Suite(.timeLimit(.minutes(10))) struct RefusalTests {
    @discardableResult
    private func expect(
        _ code: LarderClientError.Code, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
    ) async -> String {
        do {
            try await body()
            Issue.record("nothing was thrown, \(code) was expected", sourceLocation: sourceLocation)
        } catch let error as LarderClientError {
            #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
            return error.description
        } catch {
            Issue.record("\(error) was thrown, \(code) was expected", sourceLocation: sourceLocation)
        }
        return ""
    }

    // MARK: Finished transactions

    /// Each transaction is used when it is over: after its closure has returned or thrown, or in a later attempt.
    @Test func aFinishedTransactionRefusesFurtherCalls() async throws {
        let process = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: process.socketPath)
        let numbers = client.cache(of: Int.self)
        var kept: RemoteTransaction<Int>?
        try await numbers.transaction(watching: [String]()) { kept = $0 }
        struct Stop: Error {}
        var failed: RemoteTransaction<Int>?
        _ = try? await numbers.transaction(watching: [String]()) { transaction in
            failed = transaction
            throw Stop()
        }
        for transaction in [try #require(kept), try #require(failed)] {
            await expect(.closed) { _ = try await transaction.value(forKey: "k") }
            await expect(.closed) { _ = try await transaction.bytes(forKey: "k") }
            await expect(.closed) { try await transaction.watch(["k"]) }
            await expect(.closed) { try await transaction.watch([String]()) }
            let text = await expect(.closed) { try transaction.set(1, forKey: "k") }
            #expect(text.hasPrefix("SET") && text.contains("the call that provided it, which has ended"))
            await expect(.closed) { try transaction.setBytes([1], forKey: "k") }
            await expect(.closed) { try transaction.remove("k") }
        }
        client.close()
        try process.stop()
    }

    // MARK: Ranges

    @Test func numbersOutOfRangeAreRefusedWithoutARequest() async throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let sent = server.requests
        let numbers = client.cache(of: Int.self)
        for count in [0, -5] {
            let text = await expect(.invalidArgument) {
                try await numbers.transaction(watching: ["k"], attempts: count) { _ in _ = Issue.record("it ran") }
            }
            #expect(text.contains("attempts is \(count), and must be at least 1"))
            let update = await expect(.invalidArgument) {
                try await numbers.update(forKey: "k", attempts: count) { _ in _ = Issue.record("it ran") }
            }
            #expect(update.contains("attempts is \(count), and must be at least 1"))
            for subscribe in [
                { _ = try await client.subscribe(to: "c", bufferMax: count) },
                { _ = try await client.subscribe(matching: "c*", bufferMax: count) },
                { _ = try await client.subscribe(toSharded: "c", bufferMax: count) },
            ] {
                let text = await expect(.invalidArgument, subscribe)
                #expect(text.contains("bufferMax is \(count), and must be at least 1"))
            }
        }
        let text = await expect(.invalidArgument) {
            try await numbers.touch("k", policy: .until(millisecondsSince1970: .max))
        }
        #expect(text.contains("'k'") && text.contains("is after 100000000000000"))
        #expect(server.requests == sent)
    }

    @Test func invalidNearCacheOptionsAreRefused() async throws {
        for (near, name) in [
            (NearCacheOptions(bytesMax: 0), "bytesMax is 0, and must be at least 1"),
            (.init(bytesMax: -1), "bytesMax is -1"), (.init(ageMillisecondsMax: 0), "ageMillisecondsMax is 0"),
            (.init(ageMillisecondsMax: -1), "ageMillisecondsMax is -1, and must be at least 1"),
        ] {
            let text = await expect(.invalidArgument) {
                _ = try await LarderClient.connect(socketPath: "/none", options: .init(nearCache: near))
            }
            #expect(text.contains(name))
        }
    }

    @Test func valuesThatAreTooLongAreRefusedAtOnce() async throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let blocking = try BlockingLarderClient(socketPath: server.path)
        let sent = server.requests
        let count = 536_870_913
        // Leave the bytes uninitialized: untouched memory pages take no memory.
        let long = [UInt8](unsafeUninitializedCapacity: count) { $1 = count }
        let bytes = client.cache(of: [UInt8].self)
        for store in [
            { try await bytes.set(long, forKey: "k") }, { try await bytes.setBytes(long, forKey: "k") },
            { _ = try await bytes.setIfAbsent(long, forKey: "k") },
            { try await bytes.batch { try $0.setBytes(long, forKey: "k") } },
            { try await bytes.batch { try $0.set(long, forKey: "k") } }, { try blocking.set(long, forKey: "k") },
            { try blocking.setBytes(long, forKey: "k") }, { try blocking.batch { try $0.setBytes(long, forKey: "k") } },
        ] as [() async throws -> Void] {
            let text = await expect(.invalidArgument, store)
            #expect(text.hasPrefix("SET"))
            #expect(text.contains(", key 'k': the value has 536870913 bytes; the limit is 536870912"))
        }
        let set = [Array("SET".utf8), Array("k".utf8), long]
        for send in [
            { _ = try await client.publish(long, to: "c") }, { _ = try await client.publish(long, toSharded: "c") },
            { _ = try await client.command(bytes: set) }, { _ = try blocking.command(bytes: set) },
            { _ = try await client.withConnection { try await $0.command(bytes: set) } },
        ] as [() async throws -> Void] {
            let text = await expect(.invalidArgument, send)
            #expect(text.contains("536870913 bytes; the limit is 536870912"))
        }
        #expect(
            !server.requests.contains { $0[0] == "SET" || $0[0] == "MSETEX" } && sent.count <= server.requests.count)
    }

    // MARK: Words

    @Test func cancellationBeforeSendingIsReportedAsNotExecuted() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/s"
        let first = try FakeServer(at: path) { _ in .standard }
        let client = try await LarderClient.connect(
            socketPath: path, options: .init(timeoutMilliseconds: 60_000, reconnectPatienceMilliseconds: 60_000))
        first.stop()
        while client.core.own.links[0].isConnected(1) { await Task.yield() }
        let waiting = Task { try await client.command("NEVER") }
        // The call may or may not have begun to wait now. The result must be the same.
        await Task.yield()
        waiting.cancel()
        let text = await expect(.cancelled) { _ = try await waiting.value }
        #expect(text == "NEVER: the task was cancelled before the request was sent; it was not executed")
    }

    @Test func cancellationAfterSendingIsReportedAsUnknown() async throws {
        let server = try AsyncClientTests.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let hanging = Task { try await client.command("HANG") }
        while !server.requests.contains(["HANG"]) { await Task.yield() }
        hanging.cancel()
        let text = await expect(.cancelled) { _ = try await hanging.value }
        #expect(text.hasSuffix("it is unknown whether the request was executed"))
    }

    @Test func anInvalidDatabaseIsNamedInTheError() async throws {
        let process = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: process.socketPath)
        let blocking = try BlockingLarderClient(socketPath: process.socketPath)
        for (name, rule) in [("Bad Name", "a-z, 0-9, '.', '_' and '-'"), ("16", "0 to 15"), ("", "1 to 64")] {
            for call in [
                { _ = try await client.cache(name, of: Int.self).value(forKey: "k") },
                { _ = try await LarderClient.connect(socketPath: process.socketPath, options: .init(database: name)) },
                { _ = try BlockingLarderClient(socketPath: process.socketPath, database: name) },
                { try blocking.select(name) },
            ] as [() async throws -> Void] {
                let text = await expect(.server, call)
                #expect(text.contains("the database '\(name)' cannot be selected") && text.contains(rule), "\(text)")
            }
        }
        client.close()
        try process.stop()
    }

    /// All calls of a blocking client share one connection. So the client refuses commands that would break the
    /// connection for the next call, and sends nothing.
    @Test func aBlockingClientRefusesCommandsThatBreakItsConnection() async throws {
        let process = try DaemonProcess()
        let client = try BlockingLarderClient(socketPath: process.socketPath)
        for words in [
            ["subscribe", "c"], ["PSUBSCRIBE", "c*"], ["UNSUBSCRIBE"], ["MONITOR"], ["CLIENT", "REPLY", "OFF"],
            ["MULTI"],
        ] {
            let text = await expect(.invalidArgument) { try client.command(words) }
            #expect(text.contains("cannot be sent here"), "\(text)")
            try client.set(words, forKey: "k")
            #expect(try client.value([String].self, forKey: "k") == words)
        }
        let transaction = [["MULTI"], ["SET", "a", "1"], ["EXEC"]].map { $0.map { Array($0.utf8) } }
        #expect(try client.pipeline(transaction).count == 3)
        #expect(try client.command("GET", "a") == .bulk(Array("1".utf8)))
        _ = await expect(.invalidArgument) { _ = try client.pipeline([[Array("MONITOR".utf8)]]) }
        // If SELECT were refused, the other commands would run in the previous database.
        let select = ["SELECT", "other"].map { Array($0.utf8) }
        _ = await expect(.invalidArgument) { _ = try client.pipeline([select, [Array("FLUSHDB".utf8)]]) }
        #expect(try client.pipeline([[Array("PING".utf8)], select]).count == 2)
        try process.stop()
    }

    @Test func decodingErrorsOfRemovedValuesNameTheCommand() async throws {
        let process = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: process.socketPath)
        let numbers = client.cache(of: Int.self)
        try await numbers.setBytes(Array("text".utf8), forKey: "w")
        let renewing = await expect(.decode) { _ = try await numbers.value(forKey: "w", renewing: .low) }
        #expect(renewing.hasPrefix("GETEX in database '0', key 'w'"))
        let removing = await expect(.decode) { _ = try await numbers.removeValue(forKey: "w") }
        #expect(removing.hasPrefix("GETDEL in database '0', key 'w'"))
        #expect(try await !numbers.contains("w"))
        client.close()
        try process.stop()
    }

    // MARK: Empty requests

    @Test func emptyRequestsOfAClosedClientThrowClosed() async throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let blocking = try BlockingLarderClient(socketPath: server.path)
        let numbers = client.cache(of: Int.self)
        #expect(try await numbers.values(forKeys: [String]()) == [:])
        #expect(try blocking.values(Int.self, forKeys: [String]()) == [:])
        client.close()
        blocking.close()
        await expect(.closed) { _ = try await numbers.values(forKeys: [String]()) }
        await expect(.closed) { try await numbers.remove([String]()) }
        await expect(.closed) { try await numbers.set([String: Int]()) }
        await expect(.closed) { try await numbers.batch { _ in } }
        await expect(.closed) { _ = try await client.pipeline([]) }
        await expect(.closed) { _ = try await client.transaction([[[UInt8]]]()) }
        await expect(.closed) { _ = try blocking.values(Int.self, forKeys: [String]()) }
        await expect(.closed) { try blocking.remove([String]()) }
        await expect(.closed) { try blocking.batch { _ in } }
        await expect(.closed) { _ = try blocking.pipeline([]) }
    }

    @Test func aClosedClientReturnsNothingFromItsNearCache() async throws {
        let process = try DaemonProcess()
        for _ in 0..<20 {
            let client = try await LarderClient.connect(
                socketPath: process.socketPath, options: .init(nearCache: .init()))
            let numbers = client.cache(of: Int.self)
            try await numbers.set(1, forKey: "k")
            while client.nearCacheStatistics()?.hits == 0 { #expect(try await numbers.value(forKey: "k") == 1) }
            client.close()
            await expect(.closed) { _ = try await numbers.value(forKey: "k") }
            await expect(.closed) { _ = try await numbers.values(forKeys: ["k"]) }
        }
        try process.stop()
    }

    // MARK: Values

    @Test func storingADecimalNaNIsRefused() async throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let text = await expect(.encode) { try await client.cache(of: [Decimal].self).set([1, .nan], forKey: "k") }
        #expect(text.hasSuffix("a value of type Decimal is not finite at '[1]'"))
    }

    @Test func rawTextCanBeReadAsAnOptionalString() async throws {
        let process = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: process.socketPath)
        let texts = client.cache(of: String?.self)
        for text in ["", "plain", "null"] {
            try await texts.setBytes(Array(text.utf8), forKey: "k")
            #expect(try await texts.value(forKey: "k") == .some(text))
        }
        try await texts.set(nil, forKey: "k")
        #expect(try await texts.value(forKey: "k") == .some(nil))
        client.close()
        try process.stop()
    }
}
