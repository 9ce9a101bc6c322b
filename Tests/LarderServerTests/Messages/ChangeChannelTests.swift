import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of the channels that report changes of keys: which messages each listener gets. The channels need no setting.
@Suite struct ChangeChannelTests {
    let server: SocketlessServer
    let listener: TestClient
    let writer: TestClient

    init() throws {
        server = try SocketlessServer(policy: .never)
        listener = server.connect()
        writer = server.connect()
    }

    /// Returns the messages that the listener has received, as `channel payload`.
    private func heard() -> [String] {
        server.commit()
        server.deliver()
        return RawReply.split(Array(listener.takeSendable().utf8)).map { message in
            let words = String(decoding: message, as: UTF8.self).split(
                separator: "\r\n", omittingEmptySubsequences: false)
            guard words.count > 6 else { return "?" }
            return words[2] == "pmessage" ? "\(words[6]) \(words[8])" : "\(words[4]) \(words[6])"
        }
    }

    @Test("each kind of change is published to its channel") func everyKindIsPublished() throws {
        _ = listener("PSUBSCRIBE __change@*")
        let cases: [(String, [String])] = [
            ("SET k v", [":k stored"]), ("APPEND k w", [":k stored"]), ("EXPIRE k 100", [":k stored"]),
            ("GET k", []), ("DEL k nothing", [":k removed"]), ("MSET a 1 b 2", [":a stored", ":b stored"]),
            ("RENAME a c", [":a removed", ":c stored"]), ("PURGE PREFIX b", [":b removed"]),
            ("SET p v PX 100000 TAGS 1 t", [":p stored"]), ("PURGE TAG t u SOFT", [" purged t", " purged u"]),
            ("FLUSHDB", [" purged"]), ("FLUSHDB", []), ("SELECT books", []), ("SET x v", [":books:x stored"]),
        ]
        for (line, notified) in cases {
            _ = writer(line)
            let expected = notified.map { text in
                text.hasPrefix(":books") ? "__change@books__" + text.dropFirst(6) : "__change@0__" + text
            }
            #expect(heard() == expected, "\(line)")
        }
    }

    @Test func changesByAnyCommandArePublished() throws {
        _ = listener("PSUBSCRIBE __change@*")
        let cases: [(String, [String])] = [
            ("MULTI", []), ("SET k v", []), ("DEL k", []), ("SET l v", []),
            ("EXEC", ["0__:k stored", "0__:k removed", "0__:l stored"]),
            ("COPY l m", ["0__:m stored"]), ("MOVE m 1", ["0__:m removed", "1__:m stored"]),
            ("SWAPDB 0 1", ["0__:l removed", "0__:m stored", "1__:l stored", "1__:m removed"]),
            ("GETDEL m", ["0__:m removed"]), ("SET k v EXAT 1", []), ("SET n v", ["0__:n stored"]),
            ("SET n v EXAT 1", ["0__:n removed"]), ("PERSIST k", []),
            ("SETBIT b 7 1", ["0__:b stored"]), ("BITOP NOT c b", ["0__:c stored"]),
            ("FETCH new WAIT 0", []), ("MSETEX 2 x 1 y 2 EX 9", ["0__:x stored", "0__:y stored"]),
            ("FLUSHALL", ["0__ purged", "1__ purged"]),
        ]
        for (line, notified) in cases {
            _ = writer(line)
            let found = heard().map { String($0.dropFirst("__change@".count)) }
            #expect(
                line.hasPrefix("SWAPDB") || line == "FLUSHALL" ? found.sorted() == notified : found == notified,
                "\(line): \(found)")
        }
    }

    /// EXEC holds the locks of all 64 keys when it subscribes, so the subscription must not need any of them.
    @Test func aTransactionCanReadKeysAndSubscribeToChanges() throws {
        let client = server.connect()
        _ = client("MULTI")
        _ = client("MGET " + (0..<64).map { "k\($0)" }.joined(separator: " "))
        _ = client("SUBSCRIBE __change@0__:k1")
        #expect(client("EXEC").contains("__change@0__:k1"))
        _ = writer("SET k1 v")
        server.commit()
        server.deliver()
        #expect(client.takeSendable().contains("stored"))
    }

    @Test func uncommittedChangesAreNotPublished() throws {
        let isFailing = Guarded(false)
        let server = try SocketlessServer(policy: .never) { options in
            options.beforeCommit = { () throws(LarderError) in
                if isFailing.value { throw LarderError(.io, "the disk is gone", operation: "commit") }
            }
        }
        let (listener, writer) = (server.connect(), server.connect())
        _ = listener("PSUBSCRIBE __change@*")
        #expect(writer("SET k v") == Wire.ok)
        server.deliver()
        #expect(listener.takeSendable().contains("__change@0__:k"))
        // A policy change fails, and so do the writes that follow it.
        isFailing.value = true
        let database = try server.engine.database()
        _ = try database.changePolicy(DatabasePolicy(.high), now: database.now())
        writer.feed(encodeRequest("SET k w"))
        server.commit()
        #expect(writer.takeSendable().hasPrefix("-"))
        #expect(listener.takeSendable() == "")
        isFailing.value = false
        #expect(writer("SET l v") == Wire.ok)
        server.deliver()
        #expect(listener.takeSendable().contains("__change@0__:l"))
    }

    @Test func anExpiryIsPublishedOnceAsAChange() throws {
        _ = writer("SET before v PX 1000")
        _ = listener("SUBSCRIBE __change@0__:k __change@0__:before __change@0__")
        _ = writer("SET k v PX 1000")
        #expect(heard() == ["__change@0__:k stored"])
        server.time.advance(milliseconds: 999)
        server.engine.maintain()
        #expect(heard() == [])
        server.time.advance(milliseconds: 1)
        server.engine.maintain()
        #expect(heard().sorted() == ["__change@0__:before expired", "__change@0__:k expired"])
        _ = writer("PURGE EXPIRED")
        server.engine.maintain()
        #expect(heard() == [])
    }

    /// A subscription to a more general pattern, such as `*`, receives no changes, even if another client observes
    /// them.
    @Test func generalPatternsDoNotReceiveChanges() throws {
        let other = server.connect()
        _ = other("PSUBSCRIBE * __chang*")
        _ = listener("PSUBSCRIBE __change@0__:a*")
        _ = writer("SET a1 v")
        _ = writer("SET b v")
        #expect(heard() == ["__change@0__:a1 stored"])
        #expect(other.takeSendable() == "")
    }

    @Test func changesAreNotRecordedWithoutSubscribers() throws {
        let feed = server.engine.changes
        #expect(!feed.isOn)
        _ = listener("SUBSCRIBE __change@0__:k news")
        #expect(feed.isOn)
        _ = listener("PSUBSCRIBE __change@0__:*")
        _ = listener("UNSUBSCRIBE __change@0__:k")
        #expect(feed.isOn)
        _ = listener("PUNSUBSCRIBE")
        #expect(!feed.isOn)
        _ = listener("SSUBSCRIBE __change@0__:k")
        #expect(!feed.isOn)
        _ = listener("SUBSCRIBE __change@0__")
        #expect(feed.isOn)
        _ = listener("RESET")
        #expect(!feed.isOn)
    }

    @Test func theNameOfAChangeChannelIsParsed() {
        func parse(_ text: String) -> String? {
            ChangeChannels.parse(Array(text.utf8)).map { "\($0.database) \(String(decoding: $0.key, as: UTF8.self))" }
        }
        #expect(parse("__change@0__:k") == "0 k")
        #expect(parse("__change@a__b__:k:__:l") == "a__b k:__:l")
        #expect(parse("__change@0__:") == "0 ")
        for text in ["__change@0__", "__change@0:k", "__change@__:k", "__change@:k", "__keyspace@0__:k", ""] {
            #expect(parse(text) == nil, "\(text)")
        }
    }
}
