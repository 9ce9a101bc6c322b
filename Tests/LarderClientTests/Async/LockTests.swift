import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of locks between processes. Each client represents a process.
@Suite(.timeLimit(.minutes(10))) struct LockTests {
    let daemon: DaemonProcess
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
        daemon = try DaemonProcess(in: directory)
    }

    private func connect(_ change: (inout ClientOptions) -> Void = { _ in }) async throws -> LarderClient {
        var options = ClientOptions()
        change(&options)
        return try await LarderClient.connect(socketPath: daemon.socketPath, options: options)
    }

    /// Waits until exactly this many clients are in the daemon's queues. The head of a queue counts too.
    private func waitForQueue(_ client: LarderClient, _ count: Int) async throws {
        func number(_ name: String, _ info: String) -> Int {
            let line = info.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + ":") }
            return line.flatMap { Int($0.dropFirst(name.count + 1)) } ?? -1
        }
        while true {
            let info = try await client.serverInfo()
            if number("leases", info) + number("lease_waiters", info) == count { return }
        }
    }

    // MARK: Holding

    @Test func theLockIsHeldOnlyWhileTheBodyRuns() async throws {
        let (client, other) = (try await connect(), try await connect())
        let result = try await client.lock("l", for: .seconds(60)) { lock in
            #expect(lock.isHeld)
            let exists = try await client.command("EXISTS", "l")
            #expect(exists == .integer(1))
            #expect(await code { try await other.lock("l", for: .seconds(60), waitingUpTo: .zero) { _ in } } == .locked)
            #expect(await code { try await other.lock("l2", for: .seconds(60), waitingUpTo: .zero) { _ in } } == nil)
            let elsewhere = await code {
                try await other.lock("l", for: .seconds(60), waitingUpTo: .zero, database: "other") { _ in }
            }
            #expect(elsewhere == nil)
            return lock
        }
        #expect(!result.isHeld)
        #expect(throws: LarderClientError.self) { try result.check() }
        #expect(try await client.command("EXISTS", "l") == .integer(0))
        try await other.lock("l", for: .seconds(60), waitingUpTo: .zero) { #expect($0.token > result.token) }
    }

    @Test func aThrowingBodyReleasesTheLock() async throws {
        let client = try await connect()
        await #expect(throws: TestOrigin.Failure.self) {
            try await client.lock("l", for: .seconds(60)) { _ in throw TestOrigin.Failure() }
        }
        try await client.lock("l", for: .seconds(60), waitingUpTo: .zero) { _ in }
    }

    @Test func aCancelledBodyKeepsTheLockUntilItReturns() async throws {
        let (client, other) = (try await connect(), try await connect())
        let (origin, seen) = (TestOrigin(), Guarded(LarderClientError.Code?.none))
        origin.hold()
        let task = Task {
            try await client.lock("l", for: .seconds(60)) { _ in
                defer { seen.value = nil }
                do {
                    _ = try await origin.value()
                } catch {
                    // The cancelled body has not ended, so it still holds the lock: another client cannot take it.
                    let blocked = Task {
                        await code { try await other.lock("l", for: .seconds(60), waitingUpTo: .zero) { _ in } }
                    }
                    #expect(await blocked.value == .locked)
                    throw error
                }
            }
        }
        await origin.waitUntil(calls: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await other.lock("l", for: .seconds(60), waitingUpTo: .zero) { _ in }
    }

    @Test func fencingTokensGrowEvenAfterPurgesAndRestarts() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        var last: UInt64 = 0
        for _ in 0..<2 {
            let daemon = try DaemonProcess(in: place)
            let client = try await LarderClient.connect(socketPath: daemon.socketPath)
            for round in 0..<6 {
                let token = try await client.lock("l", for: .seconds(60)) { $0.token }
                #expect(token > last)
                last = token
                if round.isMultiple(of: 2) { try await client.command("FLUSHALL") }
            }
            // A token far in the future, as if the clock had been set back.
            try await client.command("SET", "l:fence", "\(last + 1_000_000_000_000)")
            let token = try await client.lock("l", for: .seconds(60)) { $0.token }
            #expect(token == last + 1_000_000_000_001)
            try await client.command("DEL", "l:fence")
            daemon.kill()
        }
    }

    @Test func takingTheSameLockTwiceIsAnError() async throws {
        let (client, late) = (try await connect(), Guarded(Task<UInt64, any Error>?.none))
        let gate = TestOrigin()
        gate.hold()
        try await client.lock("l", for: .seconds(60)) { _ in
            #expect(await code { try await client.lock("l", for: .seconds(60)) { _ in } } == .recursion)
            try await client.lock("inner", for: .seconds(60)) { _ in
                #expect(await code { try await client.lock("l", for: .seconds(60)) { _ in } } == .recursion)
            }
            try await client.lock("inner", for: .seconds(60)) { _ in }
            late.value = Task {
                _ = try await gate.value()
                return try await client.lock("l", for: .seconds(60)) { $0.token }
            }
        }
        // The body that started this task has ended, so the task's call of `lock` is no recursion.
        gate.letGo()
        #expect(try await late.value?.value ?? 0 > 0)
    }

    @Test func lockRefusesInvalidDurations() async throws {
        let client = try await connect()
        #expect(await code { try await client.lock("l", for: .zero) { _ in } } == .invalidArgument)
        #expect(await code { try await client.lock("l", for: .seconds(86_401)) { _ in } } == .invalidArgument)
        let limit = Duration.seconds(-1)
        #expect(
            await code { try await client.lock("l", for: .seconds(1), waitingUpTo: limit) { _ in } } == .invalidArgument
        )
        // A limit that cannot be counted in milliseconds is no error.
        try await client.lock("l", for: .seconds(1), waitingUpTo: .seconds(Int64.max)) { _ in }
        try await LiveServer.redis.run { redis in
            #expect(await code { try await redis.lock("l", for: .seconds(1)) { _ in } } == .invalidArgument)
        }
    }

    // MARK: Waiting

    @Test func waitersGetTheLockInOrder() async throws {
        let (client, others) = (try await connect(), [try await connect(), try await connect(), try await connect()])
        let (origin, order) = (TestOrigin(), Recorder<Int>())
        origin.hold()
        let first = Task { try await client.lock("l", for: .seconds(60)) { _ in _ = try await origin.value() } }
        await origin.waitUntil(calls: 1)
        try await waitForQueue(client, 0)
        var tasks: [Task<Void, any Error>] = []
        for (index, other) in others.enumerated() {
            tasks.append(Task { try await other.lock("l", for: .seconds(60)) { _ in order.add(index) } })
            try await waitForQueue(client, index + 1)
        }
        origin.letGo()
        for task in tasks { try await task.value }
        try await first.value
        #expect(order.all == [0, 1, 2])
        try await waitForQueue(client, 0)
    }

    @Test func aWaiterThatGivesUpLeavesTheQueue() async throws {
        let (client, second, third) = (try await connect(), try await connect(), try await connect())
        let origin = TestOrigin()
        origin.hold()
        let holder = Task { try await client.lock("l", for: .seconds(60)) { _ in _ = try await origin.value() } }
        await origin.waitUntil(calls: 1)
        try await waitForQueue(client, 0)
        let cancelled = Task { await code { try await second.lock("l", for: .seconds(60)) { _ in } } }
        let inProcess = Task { await code { try await client.lock("l", for: .seconds(60)) { _ in } } }
        try await waitForQueue(client, 2)
        let late = await code { try await third.lock("l", for: .seconds(60), waitingUpTo: .milliseconds(30)) { _ in } }
        #expect(late == .locked)
        cancelled.cancel()
        inProcess.cancel()
        #expect(await cancelled.value == .cancelled)
        #expect(await inProcess.value == .cancelled)
        try await waitForQueue(client, 0)
        let closed = Task { await code { try await second.lock("l", for: .seconds(60)) { _ in } } }
        try await waitForQueue(client, 1)
        second.close()
        #expect(await closed.value == .closed)
        let last = Task { try await third.lock("l", for: .seconds(60)) { $0.token } }
        origin.letGo()
        try await holder.value
        #expect(try await last.value > 0)
    }

    /// Closing a client ends its wait for a lock, at whatever point of the wait the client is closed. A round is slow
    /// while all tests run, so there are few by default. Set LARDER_ROUNDS=60 for a long run.
    @Test func closingAClientEndsItsWaitForALock() async throws {
        let client = try await connect()
        try await client.command("SET", "l", "somebody's", "PX", "100000000")
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<(TestSetting.rounds.number() ?? 8) {
            let waiter = try await connect()
            let waiting = Task { await code { try await waiter.lock("l", for: .seconds(86_400)) { _ in } } }
            try await waitForQueue(client, 1)
            for _ in 0..<random.below(30) { await Task.yield() }
            waiter.close()
            #expect(await waiting.value == .closed)
            try await waitForQueue(client, 0)
        }
    }

    /// A waiter without a time limit keeps waiting, even if the daemon is down for longer than other calls would wait.
    @Test func aWaiterSurvivesADaemonRestart() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        var daemon: DaemonProcess? = try DaemonProcess(in: place)
        let options = ClientOptions(reconnectPatienceMilliseconds: 0)
        let path = try #require(daemon?.socketPath)
        let (waiter, observer) = (
            try await LarderClient.connect(socketPath: path, options: options),
            try await LarderClient.connect(socketPath: path)
        )
        try await observer.command("SET", "l", "somebody's", "PX", "100000000")
        let token = Task { try await waiter.lock("l", for: .seconds(3_600)) { $0.token } }
        let hasIt = Guarded(false)
        let limited = Task {
            await code {
                try await waiter.lock("m", for: .milliseconds(1)) { _ in
                    hasIt.with { $0 = true }
                    try await Task.sleep(for: .seconds(600))
                }
            }
        }
        try await waitForQueue(observer, 1)
        await eventually { hasIt.with { $0 } }
        daemon?.kill()
        #expect(await limited.value == .lockLost)
        await eventually { await code { try await waiter.command("PING") } == .noDaemon }
        daemon = try DaemonProcess(in: place)
        let later = try await LarderClient.connect(socketPath: path)
        try await later.command("DEL", "l")
        #expect(try await token.value > 0)
        withExtendedLifetime(daemon) {}
    }

    /// Neither a cancellation nor the time limit of a call waits for a daemon that does not answer.
    @Test(arguments: [false, true])
    func aStoppedDaemonDoesNotDelayCancellations(isQueued: Bool) async throws {
        let client = try await connect { $0.timeoutMilliseconds = 3_600_000 }
        if isQueued { try await client.command("SET", "l", "somebody's", "PX", "100000000") }
        let waiting = isQueued ? Task { await code { try await client.lock("l", for: .seconds(60)) { _ in } } } : nil
        if isQueued { try await waitForQueue(client, 1) }
        daemon.process.send(signal: SIGSTOP)
        defer { daemon.process.send(signal: SIGCONT) }
        let cancelled = waiting ?? Task { await code { try await client.lock("l", for: .seconds(60)) { _ in } } }
        let late = await code { try await client.lock("m", for: .seconds(60), waitingUpTo: .milliseconds(1)) { _ in } }
        #expect(late == .timeout)
        cancelled.cancel()
        #expect(await cancelled.value == .cancelled)
    }

    /// The lock of another client library is one entry with a random value, with or without a deadline.
    @Test("locks that other clients take with SET NX are respected, and exclude them")
    func locksOfOtherLibrariesAreRespected() async throws {
        let client = try await connect()
        try await client.command("SET", "l", "theirs", "NX")
        let waiting = Task { try await client.lock("l", for: .seconds(60)) { $0.token } }
        while try await client.command("PUBSUB", "CHANNELS", "*:l").elements?.count != 1 { nap() }
        try await client.command("DEL", "l")
        #expect(try await waiting.value > 0)
        try await client.command("SET", "l", "theirs", "NX", "PX", "50")
        try await client.lock("l", for: .seconds(60)) { _ in
            let theirs = try await client.command("SET", "l", "theirs", "NX", "PX", "50")
            #expect(theirs == .null)
        }
        // Wait until no client listens any more.
        while try await client.command("PUBSUB", "CHANNELS", "*:l").elements?.count != 0 { nap() }
    }

    @Test func theLockOfADisconnectedHolderExpires() async throws {
        let (client, origin) = (try await connect(), TestOrigin())
        let gone = try await connect { $0.reconnectPatienceMilliseconds = 0 }
        origin.hold()
        let lost = Task {
            await code { try await gone.lock("l", for: .milliseconds(300)) { _ in _ = try await origin.value() } }
        }
        await origin.waitUntil(calls: 1)
        // The closed client sends neither a renewal nor a release.
        gone.close()
        let token = try await client.lock("l", for: .seconds(60)) { $0.token }
        #expect(token > 0)
        #expect(await lost.value == .lockLost)
        #expect(origin.cancellations == 1)
    }

    /// A holder must leave the queue when it gets the lock. A place in the queue lasts 30 seconds: if a suspended
    /// holder kept its place, others would wait that long, although its lock expires sooner.
    @Test func theLockOfASuspendedHolderExpires() async throws {
        let client = try await connect()
        let holder = try ChildProcess(
            try DaemonProcess.program("larderctl"),
            ["lock", "l", "--for", "0.3", "--", "sh", "-c", "echo held >&2; exec sleep 60"],
            environment: ["LARDER_SOCKET=\(daemon.socketPath)", "PATH=/usr/bin:/bin"])
        _ = try holder.waitForErrorLine(containing: "held")
        try await waitForQueue(client, 0)
        holder.send(signal: SIGSTOP)
        let token = try await client.lock("l", for: .seconds(60)) { $0.token }
        #expect(token > 0)
        holder.send(signal: SIGCONT)
        #expect(try holder.waitForExit() == .exited(7))
    }

    @Test func aLockSurvivesADaemonRestart() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = Guarded(try DaemonProcess(in: place))
        let options = ClientOptions(reconnectPatienceMilliseconds: 60_000)
        let client = try await LarderClient.connect(socketPath: daemon.value.socketPath, options: options)
        try await client.lock("l", for: .seconds(120)) { lock in
            daemon.value.kill()
            daemon.value = try DaemonProcess(in: place)
            let other = try await LarderClient.connect(socketPath: daemon.value.socketPath)
            #expect(await code { try await other.lock("l", for: .seconds(9), waitingUpTo: .zero) { _ in } } == .locked)
            #expect(lock.isHeld)
        }
        #expect(try await client.command("EXISTS", "l") == .integer(0))
    }

    // MARK: Renewal and loss

    @Test func aLockIsRenewedAfterEachThirdOfItsTime() async throws {
        let (client, manual) = (try await connect(), ManualLockClock())
        @Sendable func left() async throws -> Int64 { try await client.command("PTTL", "l").int ?? 0 }
        try await client.lock("l", for: .seconds(300), clock: manual.clock) { lock in
            for _ in 0..<6 {
                try await client.command("PEXPIRE", "l", "150000")
                await eventually { manual.rests == [100_000] }
                manual.advance(by: 99_999)
                #expect(try await left() <= 150_000)
                manual.advance(by: 1)
                try await eventually { try await left() > 150_000 || !lock.isHeld }
                #expect(lock.isHeld)
            }
        }
        #expect(manual.rests == [])
    }

    @Test func aHolderWhoseEntryWasRemovedIsCancelled() async throws {
        let (client, manual, origin) = (try await connect(), ManualLockClock(), TestOrigin())
        origin.hold()
        let held = Guarded(HeldLock?.none)
        let task = Task {
            try await client.lock("l", for: .seconds(300), clock: manual.clock) { lock in
                held.value = lock
                _ = try await origin.value()
            }
        }
        await origin.waitUntil(calls: 1)
        try await client.command("DEL", "l")
        await eventually { manual.rests == [100_000] }
        manual.advance(by: 100_000)
        do {
            try await task.value
            Issue.record("the closure was not notified of the loss")
        } catch {
            let error = try #require(error as? LarderClientError)
            #expect(error.code == .lockLost && error.key == "l" && error.underlying is CancellationError)
            #expect(error.message == "the lock was lost: its entry was removed, or has another holder")
        }
        #expect(origin.cancellations == 1)
        #expect(held.value?.isHeld == false)
    }

    @Test func aLostLockIsAnErrorEvenIfTheBodySucceeds() async throws {
        let client = try await connect()
        let lost = await code {
            try await client.lock("l", for: .seconds(60)) { _ in
                _ = try await client.command("SET", "l", "theirs", "PX", "60000")
            }
        }
        #expect(lost == .lockLost)
        #expect(try await client.command("GET", "l") == .bulk(Array("theirs".utf8)), "another holder's lock stays")
    }

    @Test func aLockThatIsNotRenewedInTimeIsLost() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = Guarded(try DaemonProcess(in: place))
        let (manual, origin, held) = (ManualLockClock(), TestOrigin(), Guarded(HeldLock?.none))
        let options = ClientOptions(reconnectPatienceMilliseconds: 0)
        let client = try await LarderClient.connect(socketPath: daemon.value.socketPath, options: options)
        origin.hold()
        let task = Task {
            try await client.lock("l", for: .seconds(300), clock: manual.clock) { lock in
                held.value = lock
                _ = try await origin.value()
            }
        }
        await origin.waitUntil(calls: 1)
        daemon.value.kill()
        manual.advance(by: 299_999)
        #expect(held.value?.isHeld == true)
        manual.advance(by: 1)
        #expect(held.value?.isHeld == false)
        #expect(throws: LarderClientError.self) { try held.value?.check() }
        await eventually {
            manual.advance(by: 1)
            return origin.cancellations == 1
        }
        do {
            try await task.value
            Issue.record("the closure was not notified of the loss")
        } catch {
            let error = try #require(error as? LarderClientError)
            #expect(error.message == "the lock was lost: it could not be renewed within its 300000 ms")
        }
    }

    /// If the daemon restarts before the lock has expired, the holder keeps the lock.
    @Test func aLockSurvivesAShortDaemonOutage() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = Guarded(try DaemonProcess(in: place))
        let manual = ManualLockClock()
        let options = ClientOptions(reconnectPatienceMilliseconds: 0)
        let client = try await LarderClient.connect(socketPath: daemon.value.socketPath, options: options)
        try await client.lock("l", for: .seconds(300), clock: manual.clock) { lock in
            await eventually { manual.rests == [100_000] }
            daemon.value.kill()
            manual.advance(by: 100_000)
            // The failed renewal is retried after a tenth of the lock's time, not after another third.
            await eventually { manual.rests == [30_000] }
            daemon.value = try DaemonProcess(in: place)
            let other = try await LarderClient.connect(socketPath: daemon.value.socketPath)
            try await other.command("PEXPIRE", "l", "200000")
            while lock.isHeld, try await other.command("PTTL", "l").int ?? 0 <= 200_000 {
                if manual.rests == [30_000] { manual.advance(by: 30_000) }
            }
            #expect(lock.isHeld)
        }
    }
}

/// The kind of error that a call throws; nil for none.
private func code(_ body: () async throws -> Void) async -> LarderClientError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? LarderClientError)?.code
    }
}
