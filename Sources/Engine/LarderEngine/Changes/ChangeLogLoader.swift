/// Loads the ``ChangeLog`` of an earlier process. If one of the log's files is invalid, all files are ignored.
struct ChangeLogLoader {
    /// Why the files are ignored.
    struct Unusable: Error {
        let reason: String
    }

    /// The values that valid files must agree with.
    struct Circumstances {
        /// The upper bound of the commit sequence numbers that the last process had reserved. If the files contain
        /// another bound, they are outdated: a version of Larder without a change log has used the larder.
        let reserved: UInt64
        /// An identifier of the machine's current boot; nil if unknown.
        let machine: String?
        /// The last commit sequence number in the journal; changes with higher numbers were not committed. `.max` if
        /// the journal has no segments.
        let journalEnd: UInt64
    }

    private let circumstances: Circumstances
    private let bytesMax: Int
    private let find: (String) -> (any DatabaseIdentity)?
    private var logs: [String: DatabaseChanges] = [:]
    private var numbers: [UInt32: DatabaseChanges] = [:]
    private var nextNumber: UInt32
    private var reserved: UInt64 = 0
    private var machine: [UInt8] = []
    private var isChanging = false
    private var isClosed = false
    /// Whether a change was found that is not in the journal. Any frame after that change makes the files invalid.
    private var isCut = false

    /// - Parameters:
    ///   - bytesMax: the memory limit; beyond it, the oldest changes are dropped.
    ///   - find: returns the database with a name; nil if its changes are to be dropped.
    init(
        _ circumstances: Circumstances, bytesMax: Int, firstNumber: UInt32,
        find: @escaping (String) -> (any DatabaseIdentity)?
    ) { (self.circumstances, self.bytesMax, self.find, nextNumber) = (circumstances, bytesMax, find, firstNumber) }

    /// - Returns: the changes of each database, and the length of each segment's valid part in bytes.
    mutating func load(
        _ segments: [(number: UInt64, bytes: [UInt8])]
    ) throws(Unusable) -> (logs: [DatabaseChanges], segments: [(number: UInt64, bytes: Int)]) {
        var counted: [(number: UInt64, bytes: Int)] = []
        for index in segments.indices {
            var limit: Int?
            if index + 1 < segments.count { limit = try Self.previousBytes(segments[index + 1]) }
            _ = try Self.previousBytes(segments[index])
            counted.append((segments[index].number, try read(segments[index], limit: limit)))
            forgetOldest()
        }
        guard !isChanging else { throw Unusable(reason: "the last process ended while a database was changing") }
        guard reserved == circumstances.reserved else {
            throw Unusable(reason: "a program without a change log has used the larder in the meantime")
        }
        if !isClosed {
            guard let machine = circumstances.machine, Array(machine.utf8) == self.machine else {
                throw Unusable(reason: "the machine was restarted before the larder was closed")
            }
        }
        return (logs.values.sorted { $0.number < $1.number }, counted)
    }

    private static func previousBytes(_ segment: (number: UInt64, bytes: [UInt8])) throws(Unusable) -> Int {
        guard let bytes = ChangeSegment.previousBytes(segment.bytes, number: segment.number) else {
            throw Unusable(reason: "\(ChangeSegment.fileName(segment.number)) is damaged")
        }
        return bytes
    }

    /// Applies the records of a segment.
    /// - Parameter limit: the length of the valid part, according to the next segment; nil for the last segment, which
    ///   may end with a partial frame.
    /// - Returns: the length of the valid part in bytes.
    private mutating func read(_ segment: (number: UInt64, bytes: [UInt8]), limit: Int?) throws(Unusable) -> Int {
        let damaged = Unusable(reason: "\(ChangeSegment.fileName(segment.number)) is damaged")
        var offset = ChangeSegment.headerBytes
        var end = offset
        let isLast = limit == nil
        let limit = limit ?? segment.bytes.count
        guard limit <= segment.bytes.count else { throw damaged }
        while offset < limit {
            guard
                let range = ChangeSegment.records(segment.bytes, at: offset, limit: limit, number: segment.number)
            else {
                guard isLast, offset > ChangeSegment.headerBytes else { throw damaged }
                break
            }
            guard !isCut else { throw damaged }
            var records = ChangeRecordReader(segment.bytes, from: range.lowerBound, to: range.upperBound)
            do throws(ChangeRecordReader.Malformed) {
                while let record = try records.next() { try apply(record) }
            } catch {
                throw damaged
            }
            offset = range.upperBound
            if !isCut { end = offset }
        }
        return end
    }

    private mutating func apply(_ record: ChangeRecord) throws(ChangeRecordReader.Malformed) {
        isClosed = false
        switch record {
        case .start(let bound, let start): (numbers, reserved, machine) = ([:], bound, start)
        case .reserved(let bound): reserved = bound
        case .changing: isChanging = true
        case .changed: isChanging = false
        case .closed: isClosed = true
        case .database(let number, let name, let state): begin(number, name, state)
        case .key(let number, let key, let sequence, let version):
            isCut = isCut || sequence > circumstances.journalEnd
            if !isCut { numbers[number]?.add(key: key, sequence: sequence, version) }
        case .purge(let number, let version): numbers[number]?.purge(version)
        case .purgeTags(let number, let tags, let version): numbers[number]?.purge(.purgedTags(tags), version)
        case .purgePrefix(let number, let prefix, let version): numbers[number]?.purge(.purgedPrefix(prefix), version)
        case .foreignPurge(let number, let version): numbers[number]?.noteForeignPurge(version)
        case .anew(let number, let feed): numbers[number]?.beginAnew(feed)
        case .read(let number, let time): numbers[number]?.readAt = time
        case .deleted(let number):
            if let log = numbers.removeValue(forKey: number) { logs[log.name] = nil }
        }
    }

    private mutating func begin(_ number: UInt32, _ bytes: [UInt8], _ state: FeedState) {
        let name = String(decoding: bytes, as: UTF8.self)
        if let log = logs[name], log.resume(state) {
            numbers[number] = log
            return
        }
        logs[name] = nil
        guard let database = find(name) else { return }
        let log = DatabaseChanges(database, number: nextNumber, state)
        nextNumber += 1
        (logs[name], numbers[number]) = (log, log)
    }

    private func forgetOldest() {
        var bytes = logs.values.reduce(0) { $0 + $1.bytes }
        while bytes > bytesMax, let largest = logs.values.max(by: { $0.bytes < $1.bytes }), largest.count > 0 {
            bytes -= largest.forget(atLeast: bytes - bytesMax)
        }
    }
}
