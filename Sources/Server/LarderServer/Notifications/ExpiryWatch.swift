import LarderEngine

/// Knows which entries with deadlines of their own expire next. Entries are known from the stream of changes if they
/// expire soon; later deadlines are forgotten, and found again by scans of the databases.
///
/// Not thread-safe: the ``Notifier``'s lock guards it. A slice of a scan is read without the lock.
final class ExpiryWatch {
    /// A running scan of all databases.
    struct Pass {
        let kind: DeadlineScan.Kind
        private let range: Range<Int64>
        /// The databases that were not scanned yet; nil before the first slice.
        private var databases: [Database]?
        private var current: (database: Database, scan: DeadlineScan)?

        fileprivate init(_ kind: DeadlineScan.Kind, _ range: Range<Int64>) { (self.kind, self.range) = (kind, range) }

        /// Reads the next slice. May block.
        /// - Returns: nil at the end.
        mutating func next(_ engine: Engine) -> (database: Database, found: [DeadlineScan.Found])? {
            if databases == nil { databases = engine.databases.reversed() }
            while true {
                if current == nil { current = databases?.popLast().map { ($0, DeadlineScan($0, kind, range)) } }
                guard let database = current?.database else { return nil }
                do throws(LarderError) {
                    if let found = try current?.scan.next() { return (database, found) }
                } catch {
                    // The database was deleted, or it is damaged or unreadable, which was reported.
                    database.report(.debug, "`expired` events of its entries may be missing: \(error)")
                }
                current = nil
            }
        }
    }

    private struct Part {
        let kind: DeadlineScan.Kind
        var window: DeadlineWindow
        var pass: Pass?
    }

    private var parts: [Part]

    /// The length of the range of deadlines that one scan of the index adds, in milliseconds.
    private static let indexedSpan: Int64 = 60_000

    /// - Parameters:
    ///   - now: entries that have expired by now are ignored.
    ///   - bytesMax: the maximum memory for all deadlines together.
    init(now: Int64, bytesMax: Int) {
        let kinds = DeadlineScan.Kind.allCases
        parts = kinds.map { kind in
            let spanMax = kind == .indexed ? Self.indexedSpan : .max
            return Part(
                kind: kind,
                window: DeadlineWindow(from: now + 1, spanMax: spanMax, bytesMax: bytesMax / kinds.count))
        }
        // From now on, changes are known up to the end of the first scans.
        for index in parts.indices { beginScan(index, now: now) }
    }

    /// All expiries before this time, which is at most `now + 1`, were reported.
    func reportedUntil(now: Int64) -> Int64 { parts.map { $0.window.reportedUntil(now: now) }.min() ?? .max }
    /// No entry expires before this time, unless it is changed; nil if none expires in the known future.
    var nearest: Int64? { parts.compactMap(\.window.nearest).min() }
    /// Whether scans should go on without pauses: other ones need not.
    var isUrgent: Bool { parts.contains { $0.kind == .indexed && $0.pass != nil } }
    var isScanning: Bool { parts.contains { $0.pass != nil } }

    // MARK: Changes

    /// Records the deadline of a changed entry.
    /// - Returns: the entry's previous deadline, if it was known.
    func record(_ change: EntryChange) -> Int64? {
        let name = EntryName(change.database, change.key)
        var header: RecordHeader?
        if case .stored(let stored) = change.kind { header = stored }
        var old: Int64?
        for index in parts.indices {
            var deadline: Int64?
            if let header, case .own(let own) = header.rule, DeadlineScan.Kind(header) == parts[index].kind {
                deadline = own
            }
            let known = parts[index].window.set(name, deadline)
            old = old ?? known
        }
        return old
    }

    func removeAll(of database: any DatabaseIdentity) {
        for index in parts.indices { parts[index].window.removeAll(of: database) }
    }

    /// Whether an entry's deadline is too late to be known.
    func isLater(_ header: RecordHeader) -> Bool {
        guard case .own(let deadline) = header.rule else { return false }
        return parts.contains { $0.kind == DeadlineScan.Kind(header) && deadline >= $0.window.horizon }
    }

    // MARK: Time

    /// Removes and returns the next entry whose deadline has come.
    func popDue(now: Int64) -> EntryName? {
        for index in parts.indices.sorted(by: { parts[$0].window.nearest ?? .max < parts[$1].window.nearest ?? .max }) {
            if let name = parts[index].window.popDue(now: now) { return name }
        }
        return nil
    }

    // MARK: Scans

    private func beginScan(_ index: Int, now: Int64) {
        guard let range = parts[index].window.beginScan(now: now) else { return }
        parts[index].pass = Pass(parts[index].kind, range)
    }

    /// Begins the next slice of a kind of scan.
    /// - Returns: the scan, whose next slice the caller must read and pass to ``endSlice(_:_:)``; nil if no scan is
    ///   due.
    func beginSlice(_ kind: DeadlineScan.Kind, now: Int64) -> Pass? {
        for index in parts.indices where parts[index].kind == kind {
            beginScan(index, now: now)
            parts[index].window.beginSlice()
            return parts[index].pass
        }
        return nil
    }

    /// Adds the entries of a slice.
    /// - Returns: the entries that have expired, and whose expiry must be reported now.
    func endSlice(_ pass: Pass, _ slice: (database: Database, found: [DeadlineScan.Found])?) -> [EntryName] {
        var expired: [EntryName] = []
        for index in parts.indices where parts[index].kind == pass.kind {
            for entry in slice?.found ?? [] {
                guard let database = slice?.database else { continue }
                let name = EntryName(database, entry.key)
                if parts[index].window.take(name, entry.deadline, mayRepeat: entry.mayRepeat) { expired.append(name) }
            }
            parts[index].window.endSlice()
            parts[index].pass = slice == nil ? nil : pass
            if slice == nil { parts[index].window.endScan() }
        }
        return expired
    }
}
