import LarderVocabulary

// One call of `LarderClient.lock`: takes the lock, runs the body, and releases the lock.

extension LockQueue {
    private static let longest: Int64 = 86_400_000
    /// How long after the deadline a caller waits for the daemon's answer, in milliseconds. The answer tells whether
    /// another holder has the lock.
    private static let answerMilliseconds: Int64 = 1_000

    /// Checks the arguments of a call.
    /// - Throws: `invalidArgument` for an invalid duration or time limit; `recursion` if the task already holds the
    ///   lock.
    init(
        _ core: ClientCore, _ store: DatabaseStore, _ key: [UInt8], for time: Duration, waitingUpTo limit: Duration?,
        clock: LockClock
    ) throws(LarderClientError) {
        let name = LockName(store, key)
        guard let milliseconds = time.roundedMilliseconds, (1...Self.longest).contains(milliseconds) else {
            throw name.error(.invalidArgument, "invalid lock duration \(time): it must be from 1 millisecond to a day")
        }
        // A limit that is too long to count in milliseconds is as good as a year.
        let wait = limit.map { min($0.roundedMilliseconds ?? ($0 < .zero ? -1 : .max), Self.longest * 365) }
        if let limit, let wait, wait < 0 {
            throw name.error(.invalidArgument, "waitingUpTo is \(limit), and must not be negative")
        }
        guard !LockHandle.held.contains(where: { $0.name == name && !$0.isReleased }) else {
            throw name.error(.recursion, "this task holds the lock already, and would wait for itself")
        }
        let value = "\(UInt64.random(in: 0 ... .max))-\(UInt64.random(in: 0 ... .max))"
        self.init(
            core: core, store: store, name: name, value: Array(value.utf8), milliseconds: milliseconds,
            deadline: wait.map { clock.now() + $0 }, clock: clock)
    }

    func run<Result: Sendable>(_ body: @escaping @Sendable (HeldLock) async throws -> Result) async throws -> Result {
        let lockHandle = try await enterInTime()
        // Run the body in an unstructured task, so that the lock is held until the body has ended, even if this task is
        // cancelled.
        let work = Task {
            try await LockHandle.$held.withValue(LockHandle.held + [lockHandle]) {
                try await body(HeldLock(lockHandle))
            }
        }
        let keeper = Task { if await lockHandle.keep(self) { work.cancel() } }
        let result = await withTaskCancellationHandler {
            await work.result
        } onCancel: {
            work.cancel()
        }
        keeper.cancel()
        await keeper.value
        let loss = await Task { await end(lockHandle) }.value
        if let loss {
            let underlying: (any Error)? = if case .failure(let error) = result { error } else { nil }
            throw lockHandle.error(loss, underlying)
        }
        return try result.get()
    }

    /// Takes the lock as ``enter()``, but does not wait longer for a daemon that does not answer.
    private func enterInTime() async throws(LarderClientError) -> LockHandle {
        let work = Task { () async -> Swift.Result<LockHandle, LarderClientError> in
            do throws(LarderClientError) {
                guard try await store.server().isLarder else {
                    throw name.error(.invalidArgument, "locks need larderd: this server has no queue for them")
                }
                return .success(try await enter())
            } catch {
                return .failure(error.about(name.database))
            }
        }
        let watch = left().map { Task.delayed(milliseconds: $0 + Self.answerMilliseconds) { work.cancel() } }
        defer { watch?.cancel() }
        let result = await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        if case .failure(let error) = result, error.code == .cancelled, !Task.isCancelled {
            throw name.error(.timeout, "the daemon did not answer within the time limit for the lock")
        }
        return try result.get()
    }

    /// Releases the lock.
    /// - Returns: nil if the lock was held until the body ended; otherwise how it was lost.
    private func end(_ lockHandle: LockHandle) async -> LockHandle.Loss? {
        let wasHeld = lockHandle.isHeld
        lockHandle.release()
        let answer = await release()
        if let loss = lockHandle.loss { return loss }
        switch answer {
        case true?: return nil
        case false?: return .taken
        // The daemon has not answered. If the lock had not expired when the body ended, no other holder can have had
        // the lock until then.
        case nil: return wasHeld ? nil : .unreachable
        }
    }
}
