import LarderPlatform

/// The pending changes of a sequence: at most one for each key, up to a maximum number.
///
/// - A change of a key replaces the pending change of the same key, because only the current value matters.
/// - A purge of the whole database replaces all pending changes. A purge of tags keeps its position: changes made after
///   it are reported after it.
/// - If too many changes are pending, all are dropped, and ``CacheChange/Kind/fellBehind`` is reported instead.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
package final class ChangeBuffer: @unchecked Sendable {
    private typealias Step = Result<CacheChange?, any Error>

    private struct Place {
        let number: Int
        let change: CacheChange
    }

    private let max: Int
    private let takers = WaitingTasks<Step>()
    private var lock: Lock { takers.lock }
    /// The queue of pending changes, in the order of their numbers. If a key changes again after a purge, its change
    /// gets a new place after the purge; the old place stays in the queue and is skipped.
    private var places = Deque<Place>()
    private var nextNumber = 0
    /// For each key with a pending change, the number of its place and the kind of its newest change.
    private var keys: [[UInt8]: (number: Int, kind: CacheChange.Kind)] = [:]
    /// The number of tags in pending purges.
    private var purgedTags = 0
    /// The number of the place of the last purge of tags; -1 if none is pending.
    private var lastTagPurge = -1
    /// `loss`, `hasFallenBehind` and `isPurged` are returned before the queue; `loss` after it if no changes were lost.
    private var loss: (any Error)?
    private var hasFallenBehind = false
    private var isPurged = false
    private var end: Step?

    /// - Parameter max: the maximum number of keys with pending changes plus purged tags.
    package init(max: Int) { self.max = max }

    /// Whether the sequence has ended.
    package var isFinished: Bool { lock.withLock { end != nil } }
    /// The number of waiting tasks, for tests.
    package var takerCount: Int { lock.withLock { takers.promises.count } }
    /// The number of pending changes, for tests.
    package var count: Int { lock.withLock { keys.count + purgedTags } }

    // MARK: Adding

    package func add(_ kind: CacheChange.Kind, key: [UInt8]) {
        change {
            if let present = keys[key] {
                if present.number > lastTagPurge {
                    keys[key]?.kind = kind
                    return
                }
                keys[key] = nil
            }
            guard hasRoom(1) else { return }
            keys[key] = (nextNumber, kind)
            append(CacheChange(kind, keyBytes: key))
        }
    }

    package func purge() {
        change {
            drop()
            isPurged = true
        }
    }

    package func purge(tags: [[UInt8]]) {
        change {
            // Ignore a purge without tags: as a change, it would mean that the whole database was emptied.
            guard !tags.isEmpty, hasRoom(tags.count) else { return }
            purgedTags += tags.count
            lastTagPurge = nextNumber
            append(CacheChange(.purged, tags: tags))
        }
    }

    /// Records that changes were lost, so that any entry may have changed. Drops the pending changes.
    package func fallBehind() { change { noteGap() } }

    /// Records the loss of the connection. One call of ``next()`` throws the error after the pending changes.
    package func lose(_ error: any Error) { change { loss = error } }

    /// Ends the sequence at once and drops pending changes. May be called repeatedly.
    package func finish(_ error: (any Error)? = nil) {
        let step: Step = error.map { .failure($0) } ?? .success(nil)
        let waiting = lock.withLock {
            if end == nil { end = step }
            drop()
            return takers.promises.takeAll()
        }
        for taker in waiting { taker.set(step) }
    }

    /// Runs `body`, which adds changes, and returns pending changes to waiting tasks.
    private func change(_ body: () -> Void) {
        var served: [(taker: Promise<Step>, step: Step)] = []
        lock.withLock {
            guard end == nil else { return }
            body()
            while let taker = takers.promises.first, let step = take() {
                _ = takers.promises.popFirst()
                served.append((taker, step))
            }
        }
        for (taker, step) in served { taker.set(step) }
    }

    // MARK: Called with `lock` held

    private func append(_ change: CacheChange) {
        places.append(Place(number: nextNumber, change: change))
        nextNumber += 1
        guard places.count > 64, places.count > 4 * (keys.count + purgedTags) else { return }
        places.removeAll { !isCurrent($0) }
    }

    /// Whether the place contains the current change of its key.
    private func isCurrent(_ place: Place) -> Bool {
        place.change.keyBytes.map { keys[$0]?.number == place.number } ?? true
    }

    /// Returns whether `count` more keys or tags fit. If not, drops all pending changes and records a gap.
    private func hasRoom(_ count: Int) -> Bool {
        if keys.count + purgedTags + count <= max { return true }
        noteGap()
        return false
    }

    private func noteGap() {
        drop()
        hasFallenBehind = true
    }

    private func drop() {
        (places, keys, purgedTags, lastTagPurge, isPurged) = (Deque(), [:], 0, -1, false)
    }

    private func take() -> Step? {
        if let error = loss, hasFallenBehind || keys.isEmpty && purgedTags == 0 && !isPurged {
            loss = nil
            return .failure(error)
        }
        if hasFallenBehind {
            hasFallenBehind = false
            return .success(CacheChange(.fellBehind))
        }
        if isPurged {
            isPurged = false
            return .success(CacheChange(.purged))
        }
        while let place = places.popFirst() {
            guard isCurrent(place) else { continue }
            guard let key = place.change.keyBytes else {
                purgedTags -= place.change.tags.count
                return .success(place.change)
            }
            return .success(CacheChange(keys.removeValue(forKey: key)?.kind ?? place.change.kind, keyBytes: key))
        }
        return nil
    }

    // MARK: Taking

    /// Returns the next change; nil at the end, or if the task was cancelled.
    package func next() async throws -> CacheChange? {
        try await takers.value(cancelled: .success(nil)) { end ?? take() }.get()
    }
}
