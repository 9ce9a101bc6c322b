import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Statistics, MONITOR, CLIENT PAUSE and CLIENT REPLY.
extension Session {
    /// Adds a command that has run to the statistics, and to the slow log if it was slow.
    func note(_ spec: CommandMetadata, _ call: Call, nanoseconds: Int64, failed: Bool) {
        accounting.note(spec, nanoseconds, failed, call.count) { call.bytes($0) }
    }

    /// Whether the work of the current command may be dropped if its client has disconnected: the work must only
    /// produce a reply, and must not belong to a running transaction.
    var mayDropWork: Bool {
        guard let spec = accounting.pending?.row, transactions.execution == nil else { return false }
        return !isSilent || !spec.flags.contains(.write)
    }

    /// Adds a command whose work on another thread is done to the statistics, and completes its reply.
    func notePending(_ result: WorkResult) {
        guard let pending = accounting.pending else { return }
        accounting.pending = nil
        if let failure = result.failure { server.errors.count(failure.bytes) }
        let failed = result.failure != nil
        if let command = pending.command {
            accounting.note(pending.row, result.nanoseconds, failed, command.count) { command[$0] }
        } else {
            accounting.note(pending.row, result.nanoseconds, failed, parser.argumentCount) { parser.argument($0) }
        }
        if let start = pending.start { endCommand(start) }
    }

    /// Updates those fields of the record that are not updated with each command.
    func noteRecord() {
        record.protocolVersion.store(replies.version.rawValue, ordering: .relaxed)
        record.inputBytes.store(parser.bufferedBytes, ordering: .relaxed)
    }

    func noteTransaction() {
        noteMode()
        record.queuedCommands.store(transactions.queue?.commands.count ?? -1, ordering: .relaxed)
        record.queuedBytes.store(transactions.queue?.byteCount ?? 0, ordering: .relaxed)
        record.watchedKeys.store(transactions.watches.count, ordering: .relaxed)
    }

    /// Whether the client has sent nothing for `milliseconds`. Never true for subscribers and MONITOR clients.
    func isIdle(for milliseconds: Int64) -> Bool {
        subscription.names == nil && !isMonitoring
            && server.engine.now() - record.lastActivity.load(ordering: .relaxed) > milliseconds
    }

    // MARK: MONITOR

    var isMonitoring: Bool { record.isMonitor.load(ordering: .relaxed) }

    func beginMonitoring() {
        server.monitors.add(subscriber)
        record.isMonitor.store(true, ordering: .relaxed)
        server.noteAttention()
        renewRights()
    }

    func endMonitoring() {
        guard record.isMonitor.exchange(false, ordering: .relaxed) else { return }
        server.monitors.remove(id)
        server.noteAttention()
    }

    /// Refuses commands on entries for MONITOR clients, with the error of Redis, which treats these clients like
    /// replicas.
    func checkMonitoring(_ spec: CommandMetadata) throws(CommandError) {
        guard isMonitoring else { return }
        if !spec.flags.isDisjoint(with: [.write, .readonly, .publishes]) {
            throw CommandError("ERR Replica can't interact with the keyspace")
        }
    }

    /// Sends a command to the clients that use MONITOR.
    func show(_ spec: CommandMetadata, _ call: Call) {
        // Administrative commands are not shown, as in Redis.
        guard !spec.flags.contains(.admin), !record.isUnlogged.load(ordering: .relaxed) else { return }
        let secrets = spec.secretRange(call.count) { call.bytes($0) }
        let line = Monitors.line(
            now: call.now, database: database.name, address: "unix:\(server.socketPath)", count: call.count
        ) { secrets.contains($0) ? CommandMetadata.redacted : call.bytes($0) }
        server.monitors.show(line, except: modes.replyMode == .on && !isClosing ? nil : id)
    }

    // MARK: CLIENT PAUSE and REPLY

    /// Whether a command must wait for the end of CLIENT PAUSE.
    func isPaused(_ spec: CommandMetadata) -> Bool {
        guard server.hasAttention.load(ordering: .relaxed) else { return false }
        let isWrite =
            !spec.flags.isDisjoint(with: [.write, .publishes])
            || spec.flags.contains(.runsScript) && !spec.flags.contains(.readonly)
            || spec.flags.contains(.runsTransaction)
                && transactions.queue?.commands.contains { $0.row.flags.contains(.write) } == true
        return server.pause.holds(isWrite: isWrite, now: server.engine.monotonic())
    }

    /// Whether the running command sends no reply, because of CLIENT REPLY.
    var isSilent: Bool { modes.replyMode == .off || modes.replyMode == .skipping || modes.replyMode == .skipsNext }

    /// Ends a command whose reply starts at `start`. Discards the reply if CLIENT REPLY has switched it off.
    func endCommand(_ start: Int) {
        defer { replyQueue.keepsReply = false }
        guard modes.replyMode != .on else { return }
        // Bytes that were already sent, such as the header of a long transaction's reply, are not discarded.
        if !replyQueue.keepsReply { replyQueue.discard(from: start) }
        switch modes.replyMode {
        case .skipsNext: modes.replyMode = .skipping
        case .skipping: modes.replyMode = .on
        case .on, .off: break
        }
    }
}
