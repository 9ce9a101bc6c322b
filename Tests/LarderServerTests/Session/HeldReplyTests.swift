import LarderPlatform
import LarderRESP
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderEngine
@testable import LarderServer

@Suite struct HeldReplyTests {
    @Test func theReplyToAWriteWaitsForItsCommit() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET first 1") == Wire.ok)
        call.feed(encodeRequest("SET k v"))
        #expect(call.session.replyQueue.hasHeld)
        #expect(call.takeSendable() == "")
        server.commit()
        #expect(!call.session.replyQueue.hasHeld)
        #expect(call.takeSendable() == Wire.ok)
    }

    @Test func repliesAfterAWriteWaitForItsCommit() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET first 1") == Wire.ok)
        call.feed(Array("PING\r\nSET k v\r\nPING behind\r\nGET k\r\nECHO last\r\n".utf8))
        #expect(call.takeSendable() == "+PONG\r\n")
        server.commit()
        #expect(call.takeSendable() == Wire.ok + Wire.bulk("behind") + Wire.bulk("v") + Wire.bulk("last"))
    }

    @Test func readsOfUncommittedEntriesWaitForTheCommit() throws {
        let server = try SocketlessServer()
        let writer = server.connect()
        let reader = server.connect()
        #expect(writer("SET k old") == Wire.ok)
        writer.feed(encodeRequest("SET k new"))
        for line in ["GET k", "MGET k other", "EXISTS k", "STRLEN k", "TTL k", "META k", "TYPE k", "DEL nothing k"] {
            reader.feed(encodeRequest(line))
            #expect(reader.takeSendable() == "", "\(line)")
            reader.feed(encodeRequest("PING"))
            server.commit()
            #expect(reader.takeSendable().hasSuffix("+PONG\r\n"))
            writer.feed(encodeRequest("SET k new"))
        }
        reader.feed(encodeRequest("GET other"))
        #expect(reader.takeSendable() == Wire.null, "replies for other keys do not wait")
    }

    @Test("a reply that reads an uncommitted key and a key on disk waits for the commit")
    func repliesThatNeedTheDiskWaitForCommits() throws {
        let server = try SocketlessServer { $0.memoryBytes = 0 }
        let (writer, reader) = (server.connect(), server.connect())
        #expect(writer("MSET cold 1 k old") == Wire.ok)
        server.engine.maintain()
        for line in ["MGET k cold", "MGET cold k", "EXISTS cold k", "MSETNX cold 2 k 2"] {
            writer.feed(encodeRequest("SET k new"))
            reader.feed(encodeRequest(line))
            #expect(reader.takeSendable() == "", "\(line)")
            server.commit()
            #expect(reader.takeSendable() != "")
        }
        #expect(reader.colds > 0)
    }

    @Test func onlyRepliesThatDependOnAFailedCommitAreErrors() throws {
        let isFailing = Guarded(false)
        let server = try SocketlessServer { $0.beforeCommit = failing(while: isFailing) }
        let call = server.connect()
        let other = server.connect()
        #expect(call("MSET a 1 b 2") == Wire.ok)
        isFailing.value = true
        call.feed(encodeRequest("PING before"))
        call.feed(encodeRequest("SET a new"))
        call.feed(encodeRequest("GET b"))
        call.feed(encodeRequest("GET a"))
        call.feed(encodeRequest("ECHO behind"))
        other.feed(encodeRequest("GET a"))
        other.feed(encodeRequest("GET b"))
        #expect(call.takeSendable() == Wire.bulk("before"))
        server.commit()
        let failure = Wire.error("ERR commit in database '0': the write was not committed: no more room")
        #expect(call.takeSendable() == failure + Wire.bulk("2") + failure + Wire.bulk("behind"))
        #expect(other.takeSendable() == failure + Wire.bulk("2"))
        isFailing.value = false
        #expect(call("GET a") == Wire.bulk("1"), "failed writes are rolled back")
        #expect(call("SET a newer") == Wire.ok)
        #expect(other("GET a") == Wire.bulk("newer"))
    }

    /// A reply whose own commit is already durable stays unchanged, even if the commit of an earlier reply has failed.
    @Test func anEarlierDurableCommitIsNotReportedAsFailed() {
        var replies = ReplyBuffer()
        var held = HeldReplies()
        func add(_ text: String, _ sequence: UInt64) {
            let start = replies.count
            replies.bulk(text)
            held.add(start: start, end: replies.count, CommitTicket(sequence: sequence))
        }
        add("two", 2)
        replies.bulk("free")
        add("one", 1)
        add("three", 3)
        add("open", 4)
        held.releaseDecided(in: &replies, sent: 0) { ticket in
            switch ticket.sequence {
            case 1: .committed
            case 4: .open
            default: .failed(CommandError("ERR \(ticket.sequence)"))
            }
        }
        let expected = Wire.error("ERR 2") + Wire.bulk("free") + Wire.bulk("one") + Wire.error("ERR 3")
        #expect(held.firstStart == expected.utf8.count)
        #expect(String(decoding: replies.take(), as: UTF8.self) == expected + Wire.bulk("open"))
    }

    @Test func repliesOfManyFailedCommitsBecomeErrorsInOrder() throws {
        let isFailing = Guarded(false)
        let server = try SocketlessServer { $0.beforeCommit = failing(while: isFailing) }
        let call = server.connect()
        #expect(call("SET x 1") == Wire.ok)
        isFailing.value = true
        var expected = ""
        for index in 0..<5000 {
            call.feed(encodeRequest("ECHO \(index)"))
            call.feed(encodeRequest("SET k \(index)"))
            expected +=
                Wire.bulk("\(index)")
                + Wire.error("ERR commit in database '0': the write was not committed: no more room")
        }
        #expect(call.takeSendable() == Wire.bulk("0"))
        server.commit()
        #expect(Wire.bulk("0") + call.takeSendable() == expected)
        #expect(call.pauses.filter { $0 != "prepare" }.isEmpty)
    }

    /// Commits end one after the other. Replies become sendable in order, and bytes that were sent never change.
    @Test("replies are sent in parts while later ones wait for commits")
    func repliesAreSentWhileLaterOnesWait() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET x 1") == Wire.ok)
        var sent = ""
        for index in 0..<3000 {
            call.feed(encodeRequest("SET k \(index)"))
            call.feed(encodeRequest("GET k"))
            if index % 7 == 0 { server.commit() }
            if index % 3 == 0 { sent += call.takeSendable() }
        }
        server.commit()
        sent += call.takeSendable()
        #expect(sent == (0..<3000).map { Wire.ok + Wire.bulk("\($0)") }.joined())
        #expect(!call.session.replyQueue.hasHeld)
    }

    @Test func writersWaitIfTooManyWritesAreUncommitted() throws {
        let server = try SocketlessServer { $0.pendingBytesMax = 10_000 }
        let call = server.connect()
        let value = String(repeating: "v", count: 6000)
        call.feed(encodeRequest(["SET", "a", value]))
        call.feed(encodeRequest(["SET", "b", value]))
        #expect(!call.pauses.contains("congested"))
        call.feed(encodeRequest(["SET", "c", value]))
        #expect(call.pauses.contains("congested"))
        server.commit()
        #expect(call.takeSendable() == Wire.ok + Wire.ok + Wire.ok)
        #expect(call("GET c") == Wire.bulk(value))
    }

    @Test func commandsWaitIfTooManyReplyBytesAreUnsent() throws {
        var limits = Limits()
        limits.outputBytesPause = 1000
        let server = try SocketlessServer(limits: limits)
        let call = server.connect()
        let text = String(repeating: "t", count: 400)
        for _ in 0..<5 { call.feed(encodeRequest(["ECHO", text])) }
        #expect(call.takeSendable() == String(repeating: Wire.bulk(text), count: 3))
        call.run()
        #expect(call.takeSendable() == String(repeating: Wire.bulk(text), count: 2))
    }

    /// While a database cannot be opened, each command on it returns an error. The database works again as soon as it
    /// can be opened.
    @Test("commands on a database that cannot be opened return errors")
    func commandsOnAnUnopenableDatabaseReturnErrors() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SELECT books") == Wire.ok)
        #expect(call("SET a 1") == Wire.ok)
        let path = server.engine.directory + "/books/POINTER"
        let pointer = try #require(try FileSystem.read(path))
        server.engine.shutdown()
        let newer = Array(
            String(decoding: pointer, as: UTF8.self).replacing("larder-database 1", "larder-database 9").utf8)
        _ = try FileSystem.replace(path, with: newer)
        let again = try SocketlessServer(reopening: server)
        let client = again.connect()
        #expect(client("SET zero 1") == Wire.ok)
        #expect(client("SELECT books") == Wire.ok)
        for line in [
            "GET a", "SET a 2", "DEL a", "MGET a b", "KEYS *", "DBSIZE", "PURGE", "POLICY low", "SNAPSHOT OPEN",
        ] {
            let reply = client(line)
            #expect(reply.hasPrefix("-ERR") && reply.contains("newer Larder"), "\(line): \(reply)")
        }
        #expect(again.state.openSnapshots.read() == 0)
        #expect(client("DATABASES").contains("$5\r\nstate\r\n$6\r\nfailed\r\n"))
        #expect(client("FLUSHALL").contains("newer Larder"))
        #expect(client("SELECT 0") == Wire.ok)
        #expect(client("DBSIZE") == Wire.int(0), "the other databases are flushed")
        _ = try FileSystem.replace(path, with: pointer)
        #expect(client("SELECT books") == Wire.ok)
        #expect(client("GET a") == Wire.bulk("1"))
    }
}

/// Returns a hook that makes commits fail while `isFailing` is true.
func failing(while isFailing: Guarded<Bool>) -> @Sendable () throws(LarderError) -> Void {
    { () throws(LarderError) in
        if isFailing.value { throw LarderError(.io, "no more room", operation: "write", database: "0") }
    }
}

extension String {
    fileprivate func replacing(_ old: String, _ new: String) -> String {
        var lines = split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        for index in lines.indices where lines[index] == old { lines[index] = new }
        return lines.joined(separator: "\n")
    }
}
