import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of larders that follow each other, while daemons are killed and restarted, and larders restored and purged.
@Suite(.timeLimit(.minutes(10))) struct FollowerTests {
    private typealias Larder = FollowedLarder

    private func follower(
        _ from: Larder, _ to: Larder, _ options: ReplicationOptions = ReplicationOptions(),
        rule: ReplicationRule = .later, joins: Bool = false
    ) throws -> LarderFollower {
        var options = options
        options.batchCount = 7
        options.joins = options.joins || joins
        return try LarderFollower(from: try from.client(), to: try to.client(), options, rule: rule)
    }

    /// Follows until the target has all changes of the source.
    @discardableResult
    private func follow(
        _ from: Larder, _ to: Larder, _ options: ReplicationOptions = ReplicationOptions(),
        rule: ReplicationRule = .later, joins: Bool = false
    ) throws -> ReplicationProgress {
        let follower = try follower(from, to, options, rule: rule, joins: joins)
        var steps = 0
        while try follower.step() != .idle {
            steps += 1
            try #require(steps < 10_000, "following does not end")
        }
        #expect(follower.progress.done == follower.progress.total)
        return follower.progress
    }

    private func expectSame(
        _ one: Larder, _ two: Larder, _ comment: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let (first, second) = (Set(try one.contents()), Set(try two.contents()))
        #expect(
            first.subtracting(second).isEmpty && second.subtracting(first).isEmpty,
            "\(comment): \(first.subtracting(second).sorted()) and \(second.subtracting(first).sorted())",
            sourceLocation: sourceLocation)
    }

    @Test func aFullPassCreatesTheIndexesThatTheTargetLacks() throws {
        let (source, target) = (try Larder(), try Larder())
        func call(_ larder: Larder, _ line: String) throws -> String {
            String(
                decoding: try larder.daemon.connect().call(line.split(separator: " ").map(String.init)), as: UTF8.self)
        }
        func names(_ larder: Larder) throws -> [String] {
            try larder.client().indexes().map { "\($0.name) \($0.paths)" }
        }
        for line in ["INDEX CREATE a PREFIX b: ON x DESC y", "INDEX CREATE b ON x", "INDEX CREATE places GEO ON at"] {
            #expect(try call(source, line) == "+OK\r\n")
        }
        #expect(try call(target, "INDEX CREATE b ON own") == "+OK\r\n")
        #expect(try call(target, "INDEX CREATE c ON own") == "+OK\r\n")
        _ = try source.call("SET", "b:1", #"{"x":1,"y":2}"#)
        try follow(source, target)
        let all = [#"a ["x DESC", "y"]"#, #"b ["own"]"#, #"c ["own"]"#, #"places ["at GEO"]"#]
        #expect(try names(target).sorted() == all)
        #expect(try call(target, "QUERY KEYS WHERE @key PREFIX b: AND x = 1").hasSuffix("\r\nb:1\r\n"))
        // Changes of the definitions are not followed, until the next full pass.
        #expect(try call(source, "INDEX DROP a") == "+OK\r\n")
        #expect(try call(source, "INDEX CREATE d ON x") == "+OK\r\n")
        try follow(source, target)
        #expect(try names(target).sorted() == all)
    }

    @Test("a running follower survives restarts of the source, and ends gracefully", arguments: [false, true])
    func aFollowerRuns(isCancelled: Bool) async throws {
        let (source, target) = (try Larder(), try Larder())
        let follower = try follower(source, target)
        let run = Task { try await follower.run() }
        _ = try source.call("SET", "a", "1")
        await eventually { (try? target.call("GET", "a")) == "$1\r\n1\r\n" }
        try source.restart(kills: true)
        _ = try source.call("SET", "b", "2")
        await eventually { (try? target.call("GET", "b")) == "$1\r\n2\r\n" }
        if isCancelled { run.cancel() } else { follower.shutdown() }
        try await run.value
        #expect(follower.progress.done >= 2)
        _ = try source.call("SET", "c", "3")
        try follower.step()
        #expect(try target.call("GET", "c") == "$1\r\n3\r\n")
        if isCancelled { return }
        // After the shutdown another run makes no step.
        _ = try source.call("SET", "d", "4")
        try await follower.run()
        #expect(try target.call("GET", "d") == "$-1\r\n")
    }

    @Test("a run ends although a daemon does not answer", arguments: [false, true])
    func aRunEndsBesideAStoppedDaemon(isCancelled: Bool) async throws {
        let (source, target) = (try Larder(), try Larder())
        let from = try BlockingLarderClient(socketPath: source.path, timeoutMilliseconds: 0)
        let follower = try LarderFollower(from: from, to: try target.client(), ReplicationOptions(database: "0"))
        let run = Task { try await follower.run() }
        _ = try source.call("SET", "a", "1")
        await eventually { (try? target.call("GET", "a")) == "$1\r\n1\r\n" }
        source.daemon.send(signal: SIGSTOP)
        if isCancelled { run.cancel() } else { follower.shutdown() }
        try await run.value
        source.daemon.send(signal: SIGCONT)
        // The clients can be used again.
        _ = try source.call("SET", "b", "2")
        while try follower.step() != .idle {}
        #expect(try target.call("GET", "b") == "$1\r\n2\r\n")
    }

    @Test func stepsAreRepeatedIfTheyMaySucceedLater() {
        func error(_ code: LarderClientError.Code, _ message: String) -> LarderClientError {
            LarderClientError(code, message, operation: "replicate")
        }
        #expect(LarderFollower.mayRepeat(error(.noDaemon, "no daemon")))
        #expect(LarderFollower.mayRepeat(.server("ERR commit: No space left on device", operation: "SET")))
        #expect(!LarderFollower.mayRepeat(.server("NOPERM this user has no permissions", operation: "SET")))
        #expect(!LarderFollower.mayRepeat(error(.invalidArgument, "the target has an origin")))
    }

    @Test func aRunEndsIfAClientIsClosed() async throws {
        let (source, target) = (try Larder(), try Larder())
        let (from, to) = (try source.client(), try target.client())
        let follower = try LarderFollower(from: from, to: to, ReplicationOptions(database: "0"))
        let run = Task { try await follower.run() }
        _ = try source.call("SET", "a", "1")
        await eventually { (try? target.call("GET", "a")) == "$1\r\n1\r\n" }
        from.close()
        let error = await #expect(throws: LarderClientError.self) { try await run.value }
        #expect(error?.code == .closed)
    }

    @Test(arguments: 0..<4) func replicationMakesTheTargetEqualToItsSource(round: Int) throws {
        let seed = testSeed() &+ UInt64(round)
        var random = SeededGenerator(seed: seed)
        let (source, target) = (try Larder(changeLog: ["4K", "32M"][round % 2]), try Larder())
        var running: LarderFollower?
        for number in 0..<240 {
            try source.act(&random, number)
            // Drop the follower in any state, as if its process were killed.
            if random.oneIn(12) { running = nil }
            if random.oneIn(60) {
                try source.restart(kills: random.oneIn(2))
                running = nil
            }
            if random.oneIn(60) {
                try target.restart(kills: random.oneIn(2))
                running = nil
            }
            if random.oneIn(3) {
                if running == nil { running = try follower(source, target) }
                try running?.step()
            }
            guard number % 60 == 59 else { continue }
            running = nil
            try follow(source, target)
            try expectSame(source, target, "seed \(seed), number \(number)")
        }
    }

    @Test(arguments: 0..<4) func replicationInBothDirectionsConverges(round: Int) throws {
        let seed = testSeed() &+ UInt64(round)
        var random = SeededGenerator(seed: seed)
        let larders = [try Larder(), try Larder()]
        var followers: [LarderFollower?] = [nil, nil]
        for number in 0..<300 {
            try larders[random.below(2)].act(&random, number)
            let way = random.below(2)
            if random.oneIn(10) { followers[way] = nil }
            if random.oneIn(3) {
                if followers[way] == nil { followers[way] = try follower(larders[way], larders[1 - way], joins: true) }
                try followers[way]?.step()
            }
            if round == 3, random.oneIn(80) {
                try larders[way].restart(kills: true)
                followers = [nil, nil]
            }
            guard number % 100 == 99 else { continue }
            followers = [nil, nil]
            // Follow several times, because each follower also reads the changes that the other one has made.
            for _ in 0..<3 { for way in 0..<2 { try follow(larders[way], larders[1 - way], joins: true) } }
            try expectSame(larders[0], larders[1], "seed \(seed), number \(number)")
            for way in 0..<2 {
                #expect(
                    try follow(larders[way], larders[1 - way], joins: true).done == 0, "seed \(seed): there is no echo")
            }
        }
    }

    @Test func theLaterWriteWinsInBothLarders() throws {
        let (one, two) = (try Larder(), try Larder())
        try follow(one, two)
        try follow(two, one)
        _ = try one.call("SET", "k", "first")
        repeat { _ = try two.call("SET", "k", "second") } while try two.storedAt("k") <= one.storedAt("k")
        try follow(one, two)
        #expect(try two.call("GET", "k") == "$6\r\nsecond\r\n")
        try follow(two, one)
        #expect(try one.call("GET", "k") == "$6\r\nsecond\r\n")
        // Wait until the larder's time is later than that of "k", so that the removal of "k" is the later change.
        repeat { _ = try one.call("SET", "clock", "v") } while try one.storedAt("clock") <= one.storedAt("k")
        _ = try one.call("DEL", "k")
        try follow(two, one)
        #expect(try one.call("GET", "k") == "$-1\r\n", "the removed entry does not come back")
        try follow(one, two)
        #expect(try two.call("GET", "k") == "$-1\r\n")
    }

    @Test func entriesRemovedDuringAnOutageDoNotReappear() throws {
        let (one, two) = (try Larder(changeLog: "4K"), try Larder(changeLog: "4K"))
        for number in 0..<50 { _ = try one.call("SET", "one\(number)", "v") }
        for number in 0..<50 { _ = try two.call("SET", "two\(number)", "v") }
        for _ in 0..<2 {
            try follow(one, two, joins: true)
            try follow(two, one, joins: true)
        }
        #expect(try one.contents().count == 100)
        // Both larders change while no follower runs, and then lose their change logs.
        _ = try one.call("DEL", "one1", "two1")
        _ = try two.call("DEL", "one2", "two2")
        _ = try one.call("SET", "new1", "v")
        _ = try two.call("SET", "new2", "v")
        for larder in [one, two] { try larder.restart(kills: true, forgets: true) }
        let progress = try follow(one, two)
        #expect(progress.passes == 1)
        try follow(two, one)
        try follow(one, two)
        let (first, second) = (try one.contents(), try two.contents())
        #expect(first == second)
        let keys = Set(first.map { String($0.prefix { $0 != " " }) })
        #expect(keys.isDisjoint(with: ["one1", "two1", "one2", "two2"]))
        #expect(keys.isSuperset(of: ["new1", "new2"]), "entries written during the outage stay")
        #expect(keys.count == 98)
    }

    @Test(arguments: [true, false]) func aTargetThatHasEntriesIsRefusedWithoutJoin(joins: Bool) throws {
        let (source, target) = (try Larder(changeLog: "4K"), try Larder())
        if joins { _ = try target.call("SET", "own", "v") }
        _ = try source.call("SET", "k", "v")
        _ = try source.call("SET", "gone", "v")
        if joins {
            let refusal = #expect(throws: LarderClientError.self) { try follow(source, target) }
            #expect(refusal?.code == .invalidArgument && refusal?.message.contains("--join") == true)
            #expect(try target.contents().count == 1)
        }
        try follow(source, target, joins: joins)
        _ = try target.call("SET", "between", "v")
        _ = try source.call("SET", "k2", "v")
        repeat {
            _ = try source.call("SET", "gone", "w")
        } while try source.storedAt("gone") <= target.storedAt("between")
        try follow(source, target)
        _ = try source.call("DEL", "gone")
        try source.restart(kills: true, forgets: true)
        // This entry of the target is later than all entries from the source, so the full pass must not remove it.
        _ = try target.call("SET", "later", "v")
        #expect(try follow(source, target).passes == 1)
        let keys = try target.contents().map { String($0.prefix { $0 != " " }) }
        #expect(keys == ["k", "k2", "later"] + (joins ? ["own"] : []))
    }

    @Test func aRestoredSourceIsReplicatedAgain() throws {
        let (source, target) = (try Larder(), try Larder())
        _ = try source.call("SET", "old", "v")
        try source.restart(kills: false)
        let copy = source.place.path + "/copy"
        _ = try ChildProcess.run("cp", ["-a", source.place.path + "/larder", copy])
        for number in 0..<10 { _ = try source.call("SET", "new\(number)", "v") }
        try follow(source, target)
        #expect(try target.contents().count == 11)
        try source.restart(with: copy)
        // The restored larder continues with the sequence numbers of the copy. The target has already seen later
        // numbers.
        for number in 0..<20 { _ = try source.call("SET", "other\(number)", "v") }
        let progress = try follow(source, target)
        #expect(progress.passes == 1)
        #expect(try target.contents() == source.contents())
        #expect(try source.contents().count == 21)
    }

    @Test func aSourceThatWasEmptiedOrDeletedEmptiesTheTarget() throws {
        for words in [["PURGE"], ["FLUSHALL"]] {
            let (source, target) = (try Larder(), try Larder())
            for number in 0..<20 { _ = try source.call("SET", "k\(number)", "v") }
            try follow(source, target)
            _ = try source.daemon.connect().call(words)
            try follow(source, target)
            #expect(try target.contents().isEmpty, "\(words)")
            _ = try source.call("SET", "k", "v")
            try follow(source, target)
            #expect(try target.contents() == source.contents())
        }
    }

    @Test func filtersReplicateOnlyMatchingEntries() throws {
        let (source, target) = (try Larder(), try Larder())
        var prefix = ReplicationOptions()
        prefix.prefix = Array("a".utf8)
        var tag = ReplicationOptions()
        tag.tags = ["t"]
        _ = try target.call("SET", "b-own", "v")
        _ = try source.call("SET", "a1", "v")
        _ = try source.call("SET", "b1", "v")
        _ = try source.call("SET", "b2", "v", "TAGS", "1", "t")
        try follow(source, target, prefix)
        #expect(try target.contents().map { $0.prefix(2) } == ["a1", "b-"])
        try follow(source, target, tag)
        #expect(try target.contents().map { $0.prefix(2) } == ["a1", "b-", "b2"])
        // The entry loses the tag that is replicated.
        _ = try source.call("SET", "b2", "v", "TAGS", "0")
        _ = try source.call("SET", "b2", "v", "TAGS", "1", "u")
        try follow(source, target, tag)
        #expect(try target.contents().map { $0.prefix(2) } == ["a1", "b-"])
        _ = try source.call("PURGE")
        try follow(source, target, prefix)
        #expect(try target.contents().map { $0.prefix(2) } == ["b-"])
    }

    @Test func tagsThatAreNotTextCanBeFilters() throws {
        let (source, target) = (try Larder(), try Larder())
        let client = try source.client()
        let set = ["SET", "k", "v", "TAGS", "1"].map { Array($0.utf8) }
        _ = try client.command(bytes: set + [[0xFF, 1]])
        _ = try source.call("SET", "other", "v", "TAGS", "1", "hex:ff01")
        var options = ReplicationOptions()
        options.byteTags = [[0xFF, 1]]
        try follow(source, target, options)
        let contents = try target.contents()
        #expect(contents.map { $0.prefix(1) } == ["k"], "\(contents)")
        // Different tags must have different filters, because each filter has its own position.
        let filters = [["a,b"], ["a", "b"], ["hex:612c62"]].map { tags in
            var options = ReplicationOptions()
            options.tags = Set(tags)
            return options.filter
        }
        #expect(Set(filters).count == 3 && filters[1] == "|tags=a,b")
    }

    @Test func aCustomRuleResolvesConflicts() throws {
        let (source, target) = (try Larder(), try Larder())
        _ = try target.call("SET", "a", "10")
        _ = try target.call("SET", "b", "1")
        _ = try target.call("SET", "kept", "v")
        _ = try source.call("SET", "a", "5")
        _ = try source.call("SET", "b", "7")
        _ = try source.call("SET", "c", "3", "EX", "100")
        let asked = Recorder<String>()
        // The rule: the greater number wins, and nothing is removed.
        let rule = ReplicationRule.custom { conflict in
            asked.add(String(decoding: conflict.key, as: UTF8.self))
            guard let incoming = conflict.incoming else { return false }
            let numbers = [incoming, conflict.present].map { Int(String(decoding: $0, as: UTF8.self)) ?? 0 }
            return numbers[0] > numbers[1]
        }
        try follow(source, target, rule: rule, joins: true)
        #expect(try target.call("MGET", "a", "b", "c", "kept") == "*4\r\n$2\r\n10\r\n$1\r\n7\r\n$1\r\n3\r\n$1\r\nv\r\n")
        #expect(try target.call("TTL", "c") != ":-1\r\n")
        _ = try source.call("DEL", "b")
        try follow(source, target, rule: rule)
        #expect(try target.call("GET", "b") == "$1\r\n7\r\n")
        #expect(asked.all == ["a", "b", "b"])
    }

    @Test func invalidReplicationOptionsAreRefused() throws {
        let larder = try Larder()
        let (client, other) = (try larder.client(), try larder.client())
        let same = #expect(throws: LarderClientError.self) {
            try LarderFollower(from: client, to: other, ReplicationOptions())
        }
        #expect(same?.code == .invalidArgument && same?.message.contains("the same larder") == true)
        let target = try Larder().client()
        var options = ReplicationOptions(database: "_replication")
        #expect(throws: LarderClientError.self) { try LarderFollower(from: client, to: target, options) }
        options = ReplicationOptions()
        options.batchCount = 0
        #expect(throws: LarderClientError.self) { try LarderFollower(from: client, to: target, options) }
        options = ReplicationOptions()
        options.tags = [""]
        #expect(throws: LarderClientError.self) { try LarderFollower(from: client, to: target, options) }
        options.tags = []
        options.byteTags = [[UInt8](repeating: 1, count: 129)]
        let tag = #expect(throws: LarderClientError.self) { try LarderFollower(from: client, to: target, options) }
        #expect(tag?.code == .invalidArgument && tag?.message.contains("1 to 128 bytes") == true)
        options = ReplicationOptions(database: "a/b")
        #expect(throws: LarderClientError.self) { try LarderFollower(from: client, to: target, options) }
    }

    // MARK: Waiting

    @Test func changesWithBLOCKReturnsTheNextChange() throws {
        let larder = try Larder()
        _ = try larder.call("SET", "k", "v")
        let position = try FeedReply(try larder.client().command(["CHANGES", "SINCE", "$"])).position
        let waiting = try larder.daemon.connect()
        try waiting.send(Array("CHANGES SINCE \(position) PREFIX a BLOCK 60000\r\n".utf8))
        // Many waiting clients disconnect, each with another request already sent.
        for _ in 0..<20 {
            let lost = try larder.daemon.connect()
            try lost.send(Array("CHANGES SINCE \(position) BLOCK 60000\r\nPING\r\n".utf8))
            lost.close()
        }
        _ = try larder.call("SET", "b", "not meant")
        _ = try larder.call("SET", "a", "meant")
        let reply = String(decoding: try waiting.receive(), as: UTF8.self)
        #expect(reply.contains("meant") && !reply.contains("not meant"))
        // Waiting clients do not delay other clients.
        let last = try larder.daemon.connect()
        let end = try FeedReply(try larder.client().command(["CHANGES", "SINCE", "$"])).position
        try last.send(Array("CHANGES SINCE \(end) BLOCK 60000\r\n".utf8))
        #expect(try larder.call("PING") == "+PONG\r\n")
        try larder.daemon.stop()
    }

    @Test func changesSinceTheEndReturnsTheFirstNewChange() throws {
        let larder = try Larder()
        let client = try larder.client()
        _ = try larder.call("SET", "k", "before")
        let waiting = try larder.daemon.connect()
        try waiting.send(Array("CHANGES SINCE $ PREFIX a BLOCK 0\r\n".utf8))
        // Wait until the daemon records changes for the waiting client, which would miss earlier changes.
        while try !(client.command(["INFO", "larder"]).string ?? "").contains("followed_databases:1\r\n") { nap() }
        _ = try larder.call("SET", "b", "not meant")
        _ = try larder.call("SET", "a", "meant")
        let first = String(decoding: try waiting.receive(), as: UTF8.self)
        #expect(first.contains("meant") && !first.contains("not meant") && !first.contains("before"))
        let reply = try FeedReply(try client.command(["CHANGES", "SINCE", "$", "BLOCK", "20"]))
        #expect(reply.state == "current" && reply.items.isEmpty && reply.position.contains(":"))
    }

    @Test func changesWithBLOCKReturnsAfterItsTimeout() throws {
        let larder = try Larder()
        let client = try larder.client()
        let position = try FeedReply(try client.command(["CHANGES", "SINCE", "$"])).position
        let reply = try FeedReply(try client.command(["CHANGES", "SINCE", position, "BLOCK", "20"]))
        #expect(reply.state == "current" && reply.items.isEmpty && reply.position == position)
    }
}
