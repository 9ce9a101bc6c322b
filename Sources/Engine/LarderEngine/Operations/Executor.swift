/// Where an operation may read entries.
package enum Access: Sendable {
    /// Read only memory, as event loops must. If the disk is needed, the operation does nothing.
    case memoryOnly
    /// Read memory and the disk. May open files.
    case mayBlock
}

/// The parts of entries that a command needs.
package enum Loading: Sendable {
    /// Nothing: the command writes without reading.
    case none
    /// Only the headers. Payloads, which may be large, are not kept in memory.
    case headers
    /// Like ``headers``, but an unreadable header is no error.
    case anyHeaders
    case records
}

/// Runs operations on several entries at one instant. Locks the shards of the keys, and looks up the entries in memory.
/// If entries are missing there, unlocks the shards, reads these entries from LevelDB, and tries again.
enum Executor {
    /// Finds the entries of updates, all at one instant, and then calls `body`.
    /// - Parameters:
    ///   - updates: prepared updates, in the order of their databases' numbers, which is the order of locking. All
    ///     their locks are held at the same time. The updates are not retained here, because counting references costs
    ///     more than a lookup.
    ///   - drains: whether each attempt after the first waits until all earlier changes are committed.
    ///   - body: receives the sequence of the last commit that the reply has to wait for, and the number of the
    ///     attempt, from 0. Called with the locks held. Returns nil to request another attempt.
    /// - Returns: nil if `access` is `memoryOnly`, and the disk or another attempt is needed.
    @inline(__always)
    static func run<Result>(
        _ updates: some Collection<Unmanaged<Update>>, _ access: Access, drains: Bool = false,
        _ body: (UInt64, Int) throws(LarderError) -> Result?
    ) throws(LarderError) -> Result? {
        defer { for update in updates { update._withUnsafeGuaranteedRef { $0.forgetReads() } } }
        var attempt = 0
        while true {
            if attempt > 0 {
                if drains { updates.first?.takeUnretainedValue().database.pipeline.drain() }
                for update in updates { try update.takeUnretainedValue().load(attempt: attempt) }
            }
            for update in updates { update._withUnsafeGuaranteedRef { $0.lock() } }
            defer { for update in updates { update._withUnsafeGuaranteedRef { $0.unlock() } } }
            var sequence: UInt64 = 0
            var isComplete = true
            for update in updates where isComplete {
                isComplete = try update._withUnsafeGuaranteedRef { update in
                    Swift.Result { () throws(LarderError) in try update.look(attempt: attempt, &sequence) }
                }.get()
            }
            if isComplete, let result = try body(sequence, attempt) { return result }
            if access == .memoryOnly { return nil }
            attempt += 1
        }
    }
}
