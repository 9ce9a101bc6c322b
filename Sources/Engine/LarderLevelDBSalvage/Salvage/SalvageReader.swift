import LarderLevelDBFormat
import LarderPlatform

/// Reads everything readable in a damaged LevelDB directory, without opening it with LevelDB. Returns the newest state
/// of every key, in the order of the keys, and the ranges of keys whose newest state may be lost.
///
/// - If ``SalvageReport/isComplete`` is true, the reader returns no outdated value and no removed key: if a key's
///   newest version may be lost, the key is not returned, but listed in ``SalvageReport/lost``.
/// - It changes nothing. Nothing may write to the directory at the same time: close the database first.
/// - It keeps in memory: the logs, and for each table whose key range contains the current key, the index and one
///   block.
///
/// Reads files, so do not use it on a thread that must not block. Not thread-safe.
package final class SalvageReader {
    private let options: SalvageOptions
    private let files: SalvageFiles
    private let sink = SalvageSink()
    private var heap = SourceHeap()
    /// The gaps (key ranges with lost versions) in the logs and the manifest, sorted by their first key. Those before
    /// `gapIndex` begin at or before the current key.
    private var logGaps: [Gap] = []
    private var gapIndex = 0
    /// The current key.
    private let lastKey: Memory
    private var hasKey = false
    private var best: (any MergeSource)?

    /// Reads the file names, CURRENT, the manifest and the logs. Throws `.system` for errors of the operating system,
    /// `.tooLarge` if the logs exceed the memory limit, and `.unsupported` for a database with a different key order.
    /// Damage is reported, not thrown.
    package init(path: String, options: SalvageOptions = SalvageOptions()) throws(SalvageError) {
        self.options = options
        files = SalvageFiles(path: path, readErrorsAreDamage: options.readErrorsAreDamage)
        lastKey = try Memory(count: 0, path: path)
        let names = FoundFiles(try files.names())
        let plan = try SalvagePlan(files, names, options, &sink.report)
        let contents = try readLogs(plan, names)
        // `contents.gaps` are sorted. Those of the plan begin with the empty key, so they come first.
        logGaps = plan.gaps + contents.gaps
        for gap in logGaps { sink.lostRanges.add(gap.range) }
        if !contents.versions.isEmpty { heap.add(LogSource(contents)) }
        for run in try TableRun.runs(of: plan.tables, files: files, options: options) {
            heap.add(try TableRun(run, files: files, options: options, sink: sink))
        }
    }

    // MARK: Results

    /// The current key. Valid until the next call of ``next()``, while the reader exists.
    package var key: UnsafeRawBufferPointer { lastKey.bytes }

    /// The value of the current key; nil if the key was certainly removed. Removed keys are only returned within lost
    /// ranges. The bytes are valid as long as those of ``key``.
    package var value: UnsafeRawBufferPointer? { best?.value }

    /// The report so far. It is complete after ``next()`` has returned false. The cost is proportional to the number of
    /// lost ranges.
    package var report: SalvageReport {
        var report = sink.report
        report.lost = sink.lostRanges.ranges()
        return report
    }

    // MARK: Moving

    /// Moves to the next key. Returns false at the end. After an error the reader must be discarded.
    package func next() throws(SalvageError) -> Bool {
        while let newest = try nextKey() {
            if let first = lastKey.bytes.first, options.ignoredFirstBytes.contains(first) { continue }
            let isLost = updateGaps()
            if isLost, isHidden() {
                sink.report.withheld += 1
                continue
            }
            if newest.value != nil {
                sink.report.entries += 1
            } else if isLost {
                sink.report.removals += 1
            } else {
                continue
            }
            best = newest
            return true
        }
        best = nil
        return false
    }

    /// Moves to the next key in the logs and tables. Returns the source with the newest version of the key; nil at the
    /// end.
    private func nextKey() throws(SalvageError) -> (any MergeSource)? {
        best = nil
        while let top = heap.top {
            if top.isLoaded {
                guard hasKey, ByteOrder.compare(top.position, lastKey.bytes) == 0 else { break }
            }
            try top.step()
            heap.fix()
        }
        guard let top = heap.top else { return nil }
        lastKey.truncate(to: 0)
        try lastKey.append(top.position, path: files.path)
        hasKey = true
        var newest = top
        heap.forEachAtTop(lastKey.bytes) { if $0.sequence > newest.sequence { newest = $0 } }
        return newest
    }

    // MARK: Gaps

    /// Updates ``SalvageSink/gaps``: adds the gaps that begin at or before the current key, and drops those that end
    /// before it. Returns whether any gap contains the key.
    private func updateGaps() -> Bool {
        while gapIndex < logGaps.count, isAtOrBehind(logGaps[gapIndex].range.lower) {
            sink.gaps.append(logGaps[gapIndex])
            gapIndex += 1
        }
        guard !sink.gaps.isEmpty else { return false }
        sink.gaps.removeAll { gap in gap.range.upper.map(isAtOrBehind) ?? false }
        return sink.gaps.contains { isAtOrBehind($0.range.lower) }
    }

    private func isAtOrBehind(_ key: [UInt8]) -> Bool {
        key.withUnsafeBytes { ByteOrder.compare(lastKey.bytes, $0) >= 0 }
    }

    /// Whether a lost version of the current key may be newer than all versions that were read. Returns
    /// false if, in every gap that contains the key, all lost versions are older than one of the read versions.
    private func isHidden() -> Bool {
        sink.gaps.contains { gap in
            guard isAtOrBehind(gap.range.lower) else { return false }
            let isLowerKey = gap.range.lower.withUnsafeBytes { ByteOrder.compare($0, lastKey.bytes) == 0 }
            var isHidden = true
            heap.forEachAtTop(lastKey.bytes) { source in
                if gap.isOlder(than: source.sequence, from: source.origin, isLowerKey: isLowerKey) { isHidden = false }
            }
            return isHidden
        }
    }

    // MARK: Logs

    /// Returns the number of the last log with content. Later logs may be empty: LevelDB creates one each time it fails
    /// to open the database because the disk is full.
    private func newestLog(_ numbers: [UInt64], _ names: FoundFiles) -> UInt64? {
        numbers.last { number in
            guard let name = names.logs[number], case .file(0)? = try? files.look(at: name) else { return true }
            return options.syncedLogBytes[number] ?? 0 > 0
        }
    }

    private func readLogs(_ plan: SalvagePlan, _ names: FoundFiles) throws(SalvageError) -> LogContents {
        var items: [LogSalvage.Item] = []
        var kept = 0
        let numbers = wantedLogs(plan)
        let newest = newestLog(numbers, names)
        for number in numbers {
            let name = names.logs[number] ?? (number == 0 ? "*.log" : FileNames.log(number))
            guard names.logs[number] != nil, case .file(let byteCount) = try files.look(at: name) else {
                let hole = LogHole(
                    offset: 0, byteCount: options.syncedLogBytes[number] ?? 0, reason: "the log is missing")
                items.append((number, name, .lost(hole)))
                continue
            }
            let pieces = LogPieces(files: files, name: name, byteCount: byteCount)
            let (units, count) = try LogAssembler.units(of: pieces, byteCountMax: options.logBytesMax - kept)
            kept += count
            let synced = options.syncedLogBytes[number]
            let tail = LogUnit.cut(units, byteCount: byteCount, synced: synced, isNewest: number == newest)
            if let place = tail.at { sink.report.notes.append("\(name) is valid up to byte \(place) of \(byteCount)") }
            items += tail.units.map { (number, name, $0) }
        }
        var salvage = LogSalvage(items, options: options)
        return salvage.run(&sink.report)
    }

    /// Returns the numbers of the logs to read: those that exist, and those that are missing but must have existed.
    /// Oldest first.
    private func wantedLogs(_ plan: SalvagePlan) -> [UInt64] {
        var wanted = Set(plan.logs)
        // Logs with synced content are wanted unless they are older than the required log. If it is unknown which log
        // is required, add only those with higher numbers than all existing logs: the content of a missing log with a
        // lower number may be in a table.
        let least = plan.requiredLog ?? plan.logs.last.map { $0 &+ 1 } ?? 0
        for (number, count) in options.syncedLogBytes where count > 0 && number >= least { wanted.insert(number) }
        if let required = plan.requiredLog, options.syncedLogBytes[required] != 0 {
            // 0 stands for any log: it is needed only if no other log is wanted.
            if required > 0 || wanted.isEmpty { wanted.insert(required) }
        }
        return wanted.sorted()
    }
}
