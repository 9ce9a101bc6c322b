/// Renews a lock while its body runs. A value.
struct LockKeeper: Sendable {
    let grip: LockHandle
    let entrance: LockQueue

    /// Renews the lock after each third of its time, until the task is cancelled or the lock is lost.
    /// - Returns: whether it is lost, in which case the handle is marked as lost.
    func keep() async -> Bool {
        let clock = grip.clock
        var rest = max(1, grip.milliseconds / 3)
        while true {
            guard (try? await clock.sleep(rest)) != nil else { return false }
            let sentAt = clock.now()
            let answer = await renew()
            if Task.isCancelled { return false }
            switch answer {
            case true?:
                grip.renew(until: sentAt + grip.milliseconds)
                rest = max(1, grip.milliseconds / 3)
            case false?:
                grip.lose(.taken)
                return true
            case nil:
                let left = grip.validUntil - clock.now()
                guard left > 0 else {
                    grip.lose(.unreachable)
                    return true
                }
                rest = min(left, max(1, grip.milliseconds / 10))
            }
        }
    }

    /// - Returns: nil if the daemon has not answered by the end of the lock's time.
    private func renew() async -> Bool? {
        let left = grip.validUntil - grip.clock.now()
        guard left > 0 else { return nil }
        return await withTaskGroup(of: Bool?.self) { group in
            group.addTask { await entrance.renew() }
            group.addTask { [clock = grip.clock] in
                try? await clock.sleep(left)
                return nil
            }
            let first = await group.next()
            group.cancelAll()
            return first ?? nil
        }
    }
}
