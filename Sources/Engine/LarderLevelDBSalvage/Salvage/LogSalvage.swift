/// Builds `LogContents` from the records of all logs, oldest first. LevelDB numbers all writes consecutively. So the
/// sequences of the readable records show whether writes are missing between them, and which sequences are missing.
struct LogSalvage {
    typealias Item = (log: UInt64, name: String, unit: LogUnit)

    private let options: SalvageOptions
    private let items: [Item]
    /// For each item, the first sequence of the next record with a readable header; nil if there is none.
    private var following: [UInt64?] = []
    /// The first sequence of the next record if no write is missing; nil before the first record.
    private var expected: UInt64?
    private let contents = LogContents()

    /// - Parameter items: the units of all logs, the oldest first.
    init(_ items: [Item], options: SalvageOptions) {
        self.items = items
        self.options = options
        following = Array(repeating: nil, count: items.count)
        var next: UInt64?
        for index in items.indices.reversed() {
            following[index] = next
            if case .record(let record) = items[index].unit, let header = BatchScanner.header(of: record.front) {
                next = header.sequence
            }
        }
    }

    /// Reads all records.
    /// - Parameter report: receives the damage.
    mutating func run(_ report: inout SalvageReport) -> LogContents {
        for index in items.indices {
            switch items[index].unit {
            case .lost(let hole): lose(hole, at: index, part: .logRecord, &report)
            case .record(let record): read(record, at: index, &report)
            }
        }
        contents.sort()
        return contents
    }

    private mutating func read(_ record: LogRecord, at index: Int, _ report: inout SalvageReport) {
        guard let header = BatchScanner.header(of: record.front) else {
            return lose(Self.hole(of: record, "the record's beginning is missing"), at: index, &report)
        }
        if let expected, header.sequence < expected {
            return lose(Self.hole(of: record, "the record is out of order"), at: index, &report)
        }
        if let expected, header.sequence > expected {
            let hole = LogHole(
                offset: record.offset, byteCount: 0, reason: "records are missing before this one")
            note(hole, at: index, range: .everything, upTo: header.sequence - 1, &report)
        }
        if record.isWhole {
            readWhole(record, header, at: index, &report)
        } else {
            readPart(record, header, at: index, &report)
        }
    }

    private mutating func readWhole(
        _ record: LogRecord, _ header: BatchScanner.Header, at index: Int, _ report: inout SalvageReport
    ) {
        var scanner = BatchScanner(record.front, from: BatchScanner.headerBytes)
        var count: UInt64 = 0
        while count < header.count, scanner.next() != nil { count += 1 }
        guard count == header.count, scanner.isAtEnd else {
            return lose(Self.hole(of: record, "the record is not a batch"), at: index, &report)
        }
        scanner = BatchScanner(record.front, from: BatchScanner.headerBytes)
        if record.repaired.isEmpty {
            add(entries: scanner, from: header.sequence, record, at: index)
        } else {
            addRepaired(entries: scanner, from: header.sequence, record, at: index, &report)
        }
        expected = header.next
    }

    /// Adds a record in which wrong bits were corrected. Adds only entries without a corrected part, and reports the
    /// keys of the others as lost.
    private func addRepaired(
        entries scanner: BatchScanner, from sequence: UInt64, _ record: LogRecord, at index: Int,
        _ report: inout SalvageReport
    ) {
        var scanner = scanner
        var sequence = sequence
        var lost: [KeyRange?] = Array(repeating: nil, count: record.repaired.count)
        var part = 0
        contents.keep(record.memory)
        while true {
            let start = scanner.offset
            guard let entry = scanner.next() else { break }
            defer { sequence += 1 }
            if isIgnored(entry.key) { continue }
            while part < record.repaired.count, record.repaired[part].range.upperBound <= start { part += 1 }
            guard part < record.repaired.count, record.repaired[part].range.lowerBound < scanner.offset else {
                contents.add(entry, sequence: sequence, log: items[index].log)
                continue
            }
            let key = Array(entry.key)
            let range = KeyRange(lower: key, upper: KeyRange.successor(key))
            contents.add(Gap(range: range, hidden: .sequences(upTo: sequence)))
            lost[part] = lost[part].map { $0.joined(with: range) } ?? range
        }
        for (part, range) in zip(record.repaired, lost) {
            report.add(
                SalvageDamage(
                    part: .logRecord, file: items[index].name, offset: part.hole.offset, byteCount: part.hole.byteCount,
                    reason: part.hole.reason, range: range))
        }
    }

    private func add(entries scanner: BatchScanner, from sequence: UInt64, _ record: LogRecord, at index: Int) {
        var scanner = scanner
        var sequence = sequence
        contents.keep(record.memory)
        while let entry = scanner.next() {
            if !isIgnored(entry.key) { contents.add(entry, sequence: sequence, log: items[index].log) }
            sequence += 1
        }
    }

    private func isIgnored(_ key: UnsafeRawBufferPointer) -> Bool {
        key.first.map { options.ignoredFirstBytes.contains($0) } ?? false
    }

    // MARK: Missing parts

    /// Adds a record with a missing part: adds the entries before and after that part, and reports the range of the
    /// lost keys.
    private mutating func readPart(
        _ record: LogRecord, _ header: BatchScanner.Header, at index: Int, _ report: inout SalvageReport
    ) {
        var part = BatchPart(record, header, ignored: options.ignoredFirstBytes)
        guard part.readFront() else {
            return lose(Self.hole(of: record, "the record is not a batch"), at: index, &report)
        }
        add(
            entries: BatchScanner(part.frontEntries, from: BatchScanner.headerBytes), from: header.sequence, record,
            at: index)
        let next = following[index].flatMap { $0 >= header.sequence ? $0 : nil }
        let isAlone = next == header.next || next == nil && following[index] == nil && part.provesNoOtherRecordIsMissing
        var range = KeyRange.everything
        if isAlone, options.batchesAreSorted, part.isSorted {
            part.readTail()
            range = part.lostRange
            if let start = part.tailStart {
                add(
                    entries: BatchScanner(record.tail, from: start.offset), from: header.next - start.count, record,
                    at: index)
            }
        }
        let upTo = isAlone ? header.next - 1 : next.map { $0 &- 1 } ?? UInt64.max
        note(Self.hole(of: record, nil), at: index, range: range, upTo: upTo, &report)
        expected = max(header.next, isAlone ? 0 : next ?? 0)
    }

    /// Reports a record without a readable beginning. The sequences of the records before and after it may show that no
    /// write is missing; otherwise any key may be lost.
    private mutating func lose(
        _ hole: LogHole, at index: Int, part: SalvageDamage.Part = .logRecord, _ report: inout SalvageReport
    ) {
        let next = following[index]
        if let next, let expected, next >= expected {
            note(hole, at: index, range: next == expected ? nil : .everything, upTo: next &- 1, part: part, &report)
            self.expected = next
        } else {
            // It is unknown which sequences are missing: the sequence of the next record is unknown or too low.
            let isFirst = expected == nil
            let upTo = isFirst ? next.map { $0 &- 1 } ?? UInt64.max : UInt64.max
            note(hole, at: index, range: .everything, upTo: upTo, part: part, &report)
            if isFirst { expected = next }
        }
    }

    private func note(
        _ hole: LogHole, at index: Int, range: KeyRange?, upTo last: UInt64, part: SalvageDamage.Part = .logRecord,
        _ report: inout SalvageReport
    ) {
        let range = range?.trimmed(without: options.ignoredFirstBytes)
        report.add(
            SalvageDamage(
                part: part, file: items[index].name, offset: hole.offset, byteCount: hole.byteCount,
                reason: hole.reason, range: range))
        if let range { contents.add(Gap(range: range, hidden: .sequences(upTo: last))) }
    }

    /// Returns the missing part of a record, from the first missing byte to the last; the whole record if no part is
    /// missing, but the record cannot be used for another reason.
    private static func hole(of record: LogRecord, _ reason: String?) -> LogHole {
        guard let first = record.holes.first?.hole, let last = record.holes.last?.hole else {
            return LogHole(
                offset: record.offset, byteCount: record.memory.count, reason: reason ?? "the record has no end")
        }
        return LogHole(
            offset: first.offset, byteCount: last.end - first.offset, reason: reason ?? first.reason)
    }
}
