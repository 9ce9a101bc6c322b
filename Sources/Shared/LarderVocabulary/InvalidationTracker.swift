/// Decides which copies of a source of truth may be kept: a value only if no change of its key was reported since the
/// value was requested, and if changes were reported all the time since then.
///
/// An *epoch* is an uninterrupted period of reports. Its end, the loss of the listener, counts as a change of all keys,
/// at no cost per copy.
///
/// Keys are remembered only while requests are running, and at most `keysMax`. For requests that were sent before a
/// report that is no longer remembered, all keys count as changed.
///
/// A value type, guarded by its owner's lock.
@usableFromInline package struct InvalidationTracker<Key: Hashable & Sendable>: Sendable {
    /// The number of the report that began the current epoch; nil while no changes are reported.
    @usableFromInline package internal(set) var epoch: UInt64?
    /// The number of the last report.
    @usableFromInline package internal(set) var sequence: UInt64 = 0
    /// The number of running requests.
    @usableFromInline package internal(set) var running = 0
    /// The number of each key's last report.
    @usableFromInline var changes: [Key: UInt64] = [:]
    /// For requests that were sent before this report, all keys count as changed.
    @usableFromInline var floor: UInt64 = 0
    @usableFromInline let keysMax: Int

    /// - Parameter isListening: whether changes are already reported.
    @inlinable package init(isListening: Bool = false, keysMax: Int = 8192) {
        self.keysMax = keysMax
        epoch = isListening ? 0 : nil
    }

    // MARK: The listener

    /// Begins an epoch. Replies to earlier requests are no longer current.
    @inlinable package mutating func listen(report: UInt64? = nil) {
        changedAll(report: report)
        epoch = sequence
    }

    /// Ends the epoch, because changes are no longer reported.
    @inlinable package mutating func lose() { epoch = nil }

    // MARK: Reports

    /// Notes that keys have changed.
    /// - Parameter report: the number of the report, which must exceed all earlier ones; nil for the next number.
    @inlinable package mutating func changed(_ keys: some Collection<Key>, report: UInt64? = nil) {
        sequence = report ?? sequence + 1
        guard running > 0, changes.count + keys.count <= keysMax else { return forget() }
        for key in keys { changes[key] = sequence }
    }

    /// Notes that an unknown set of keys has changed.
    @inlinable package mutating func changedAll(report: UInt64? = nil) {
        sequence = report ?? sequence + 1
        forget()
    }

    /// Forgets which keys have changed.
    @inlinable mutating func forget() {
        floor = sequence
        if !changes.isEmpty { changes = [:] }
    }

    // MARK: Requests

    /// Notes that requests are being sent. Each needs a call of ``end(_:)``.
    /// - Returns: the number of the last report.
    @inlinable package mutating func begin(_ count: Int = 1) -> UInt64 {
        running += count
        return sequence
    }

    /// Notes that requests have ended, and that their replies were stored or dropped.
    @inlinable package mutating func end(_ count: Int = 1) {
        running -= count
        if running == 0 { forget() }
    }

    /// Whether a change of the key was reported after the report with this number, or may have been.
    @inlinable package func hasChanged(_ key: Key, since sequence: UInt64) -> Bool {
        sequence < floor || changes[key] ?? 0 > sequence
    }

    /// Whether the reply to a request may be kept.
    /// - Parameter sequence: the number of the last report when the request was sent.
    @inlinable package func isCurrent(_ key: Key, since sequence: UInt64) -> Bool {
        epoch != nil && !hasChanged(key, since: sequence)
    }
}
