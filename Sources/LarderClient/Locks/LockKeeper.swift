/// Renews a lock while its body runs. A value type.
struct LockKeeper: Sendable {
    let lockHandle: LockHandle
    let entrance: LockQueue

    /// Renews the lock each time a third of its duration has passed, until the task is cancelled or the lock is lost.
    /// - Returns: true if the lock was lost, which is then recorded in the handle; false if the task was cancelled.
    func keep() async -> Bool {
        let clock = lockHandle.clock
        var rest = max(1, lockHandle.milliseconds / 3)
        while true {
            guard (try? await clock.sleep(rest)) != nil else { return false }
            let sentAt = clock.now()
            let answer = await renew()
            if Task.isCancelled { return false }
            switch answer {
            case true?:
                lockHandle.renew(until: sentAt + lockHandle.milliseconds)
                rest = max(1, lockHandle.milliseconds / 3)
            case false?:
                lockHandle.lose(.taken)
                return true
            case nil:
                let left = lockHandle.validUntil - clock.now()
                guard left > 0 else {
                    lockHandle.lose(.unreachable)
                    return true
                }
                rest = min(left, max(1, lockHandle.milliseconds / 10))
            }
        }
    }

    /// Renews the lock once.
    /// - Returns: whether the lock still belongs to this holder; nil if the daemon did not answer before the lock
    ///   expired.
    private func renew() async -> Bool? {
        let left = lockHandle.validUntil - lockHandle.clock.now()
        guard left > 0 else { return nil }
        return await withTaskGroup(of: Bool?.self) { group in
            group.addTask { await entrance.renew() }
            group.addTask { [clock = lockHandle.clock] in
                try? await clock.sleep(left)
                return nil
            }
            let first = await group.next()
            group.cancelAll()
            return first ?? nil
        }
    }
}
