import LarderRESP

extension RedisClient: RedisServerOwner {
    var invalidationSequence: UInt64 { tracker.sequence }

    // MARK: Push messages

    func server(_ server: RedisServer, invalidated keys: [[UInt8]]) {
        report.invalidations += keys.count
        tracker.changed(keys)
        listener?.originInvalidated(keys)
    }

    func serverLost(_ server: RedisServer, _ reason: String) {
        report.epochsEnded += 1
        publish()
        listener?.originLost(reason)
    }

    func serverFailed(_ server: RedisServer, _ error: OriginError) {
        if !isClosed { listener?.originFailed(error.description) }
    }

    func serverIsTrusted(_ server: RedisServer, again: Bool) {
        publish()
        if again { listener?.originRecovered(server.name) }
    }

    /// Notifies the listener that the keys of a task are invalid, because the task may have changed them.
    func notifyWritten(_ task: RedisTask) {
        let keys = task.keysWritten
        guard !keys.isEmpty else { return }
        tracker.changed(keys)
        listener?.originInvalidated(keys)
    }

    // MARK: Replies

    func server(_ server: RedisServer, answered task: RedisTask) {
        guard !task.call.isDone else { return notifyWritten(task) }
        switch task.work {
        case .read(let call, let index): finishRead(task, call, index, server)
        case .write(let call, let write): finishWrite(task, call, write, server)
        case .remove(let call, _):
            if let message = task.replies.compactMap(\.errorMessage).first {
                return answered(task, withError: message, server)
            }
            notifyWritten(task)
            call.answer(.success(Int(task.replies.last?.int ?? 0)))
        // If a command of a transaction is refused, its error comes first, and has the reason why EXEC fails.
        case .commands(let call, _, _, _):
            guard let reply = task.replies.last else { return }
            let replies = task.isAsking ? task.replies.dropFirst() : task.replies[...]
            if let message = replies.lazy.compactMap(\.errorMessage).first {
                return answered(task, withError: message, server)
            }
            notifyWritten(task)
            call.answer(
                task.skippedBytes > 0
                    ? .failure(.tooLarge(bytes: task.skippedBytes, most: settings.limits.valueBytes))
                    : .success(reply))
        }
    }

    private func finishRead(_ task: RedisTask, _ call: RedisReadCall, _ index: Int, _ server: RedisServer) {
        if let message = task.replies.compactMap(\.errorMessage).first {
            return answered(task, withError: message, server)
        }
        finishRead(task, call, index, server.endpoint, server.stamp(for: task))
    }

    func replicaAnswered(_ task: RedisTask) {
        // Ignore error replies of replicas: they do not show whether the entry exists.
        guard case .read(let call, let index) = task.work, call.isMissing(index),
            task.replies.allSatisfy({ $0.errorMessage == nil })
        else { return }
        finishRead(task, call, index, nil, nil)
    }

    /// Completes a failed task with an error, or sends it to a replica if it is a read and there is a replica.
    private func giveUp(_ task: RedisTask, _ error: OriginError) {
        guard task.isRead, !isClosed, cluster?.replicas?.ask(task, insteadOf: error) == true else {
            return task.answer(error)
        }
    }

    private func finishRead(
        _ task: RedisTask, _ call: RedisReadCall, _ index: Int, _ endpoint: OriginEndpoint?, _ stamp: OriginStamp?
    ) {
        let most = settings.limits.valueBytes
        let name = endpoint?.description ?? "a replica"
        if task.skippedBytes > 0 { return task.answer(.tooLarge(bytes: task.skippedBytes, most: most)) }
        let value: [UInt8]?
        switch task.replies[task.replies.count - (task.isAsking ? 3 : 2)] {
        case .bulk(let bytes): value = bytes
        case .null: value = nil
        default: return task.answer(.malformed("\(name): the reply to GET is not a string"))
        }
        guard let left = task.replies.last?.int else {
            return task.answer(.malformed("\(name): the reply to PTTL is not a number"))
        }
        // Limit the total size of the values too, because a call with many keys could use up the memory.
        let bytes = (task.isSecond ? call.bytesMeanwhile : call.bytes) + (value?.count ?? 0)
        guard bytes <= most * Self.valuesOfACall else {
            return task.answer(.tooLarge(bytes: bytes, most: most * Self.valuesOfACall))
        }
        // PTTL returns -2 if the entry has expired after GET.
        let isGone = value != nil && left == -2
        let reading = TimedReading(
            reading: OriginReading(
                value: isGone ? nil : value, lifetimeMilliseconds: value == nil || left < 0 ? nil : left,
                sentAt: task.sentAt, stamp: stamp), heard: task.heard)
        if task.isSecond {
            call.hear(index, fromReplica: reading)
        } else {
            call.answer(index, .success(reading))
        }
    }

    /// The limit for the total size of all values of a call, as a multiple of the limit for one value.
    private static let valuesOfACall = 4

    private func finishWrite(_ task: RedisTask, _ call: RedisWriteCall, _ write: OriginWrite, _ server: RedisServer) {
        // The commands of a write are: [ASKING,] SET[, GET, PTTL].
        let replies = task.replies.suffix(task.readsBack ? 3 : 1)
        guard let done = replies.first else { return }
        if let message = done.errorMessage { return answered(task, withError: message, server) }
        var answer = OriginAcknowledgement(
            lifetimeMilliseconds: nil, sentAt: task.sentAt, stamp: nil, isConfirmed: false)
        // Confirm the write only if GET has returned the written value and the key has not been invalidated since then.
        // Otherwise another client may have written the key.
        if task.readsBack, case .bulk(write.value) = replies[replies.startIndex + 1], let left = replies.last?.int,
            left != -2, !tracker.hasChanged(write.key, since: task.heard)
        {
            answer = OriginAcknowledgement(
                lifetimeMilliseconds: left < 0 ? nil : left, sentAt: task.sentAt, stamp: server.stamp(for: task))
        }
        tracker.changed(task.keysWritten)
        call.answer(.success(answer))
    }

    // MARK: Errors

    /// Handles an error reply, which means that the server has not executed the task.
    private func answered(_ task: RedisTask, withError message: String, _ server: RedisServer) {
        if let redirection = Redirection(message, asked: server.endpoint) {
            return redirect(task, redirection, message, from: server)
        }
        switch message.prefix(while: { $0 != " " }) {
        case "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "LOADING", "READONLY":
            let error = OriginError.unavailable("\(server.endpoint): \(message)")
            if message.hasPrefix("READONLY"), cluster == nil { return task.answer(.refused(message)) }
            requestMap()
            let isHopeless = message.hasPrefix("CLUSTERDOWN Hash slot not served") && task.rests >= Self.unownedRests
            if cluster == nil || isHopeless || !rest(task, because: error) { task.answer(error) }
        case "NOAUTH": task.answer(.unsuitable("\(server.endpoint): \(message)"))
        default: task.answer(.refused(message))
        }
    }

    /// The maximum number of retries of a task while no server owns its slot.
    static let unownedRests = 3

    func server(_ server: RedisServer, failed task: RedisTask, _ error: OriginError) {
        guard !task.call.isDone, !isClosed else { return task.answer(error) }
        if case .unsuitable = error { return task.answer(error) }
        let mayBeSent = !task.isSent || task.isRead
        let isPassing =
            switch error {
            case .unreachable: cluster != nil
            case .unavailable: cluster != nil
            case .interrupted, .malformed: cluster != nil || task.attempts <= 2
            default: false
            }
        if isPassing, mayBeSent {
            requestMap()
            if rest(task, because: error) { return }
        }
        giveUp(task, error)
    }
}
