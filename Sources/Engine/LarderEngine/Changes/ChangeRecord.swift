/// A record in the files of a ``ChangeLog``. **On disk: do not change.** docs/StorageFormat.md shows the bytes.
enum ChangeRecord: Equatable {
    /// The first record of each segment: the bound of reserved sequences, and an identifier of the machine's boot.
    case start(reserved: UInt64, machine: [UInt8])
    /// A database: its number, which identifies it in the following records, its name, and its feed's state.
    case database(UInt32, name: [UInt8], FeedState)
    case key(UInt32, key: [UInt8], sequence: UInt64, ChangeVersion)
    case purge(UInt32, ChangeVersion)
    case purgeTags(UInt32, [[UInt8]], ChangeVersion)
    case purgePrefix(UInt32, [UInt8], ChangeVersion)
    /// A purge that was made in another larder and applied in this one.
    case foreignPurge(UInt32, ChangeVersion)
    /// The contents of the database became unknown: a new feed begins.
    case anew(UInt32, feed: UInt64)
    case deleted(UInt32)
    case read(UInt32, at: Int64)
    case reserved(UInt64)
    /// A change of a whole database begins. If no `changed` follows, its result is unknown.
    case changing
    case changed
    /// The larder was closed, and all previous records are on the disk.
    case closed
}

struct ChangeRecordWriter {
    private(set) var bytes: [UInt8] = []

    var isEmpty: Bool { bytes.isEmpty }

    mutating func add(_ record: ChangeRecord) {
        switch record {
        case .start(let reserved, let machine):
            begin(1)
            add(reserved)
            add(machine)
        case .database(let number, let name, let state):
            begin(2, number)
            add(name)
            add(state)
        case .key(let number, let key, let sequence, let version):
            begin(3, number)
            add(sequence)
            add(version)
            add(key)
        case .purge(let number, let version):
            begin(4, number)
            add(version)
        case .purgeTags(let number, let tags, let version):
            begin(5, number)
            add(version)
            addCount(tags.count)
            for tag in tags { add(tag) }
        case .foreignPurge(let number, let version):
            begin(6, number)
            add(version)
        case .anew(let number, let feed):
            begin(7, number)
            add(feed)
        case .deleted(let number): begin(8, number)
        case .read(let number, let time):
            begin(9, number)
            add(UInt64(bitPattern: time))
        case .reserved(let bound):
            begin(10)
            add(bound)
        case .changing: begin(11)
        case .changed: begin(12)
        case .closed: begin(13)
        case .purgePrefix(let number, let prefix, let version):
            begin(14, number)
            add(version)
            add(prefix)
        }
    }

    private mutating func begin(_ kind: UInt8) { bytes.append(kind) }

    private mutating func begin(_ kind: UInt8, _ number: UInt32) {
        bytes.append(kind)
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func add(_ number: UInt64) { BigEndian.append(number, to: &bytes) }

    private mutating func addCount(_ count: Int) {
        withUnsafeBytes(of: UInt32(clamping: count).bigEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func add(_ text: [UInt8]) {
        addCount(text.count)
        bytes.append(contentsOf: text)
    }

    private mutating func add(_ version: ChangeVersion) {
        add(UInt64(bitPattern: version.time))
        add(version.sequence)
    }

    private mutating func add(_ place: ChangePlace) {
        add(place.sequence)
        add(UInt64(place.step))
    }

    private mutating func add(_ state: FeedState) {
        add(state.feed)
        add(state.last)
        // Nil is encoded as time 0, which no change has.
        add(state.purge ?? ChangeVersion(time: 0))
        add(UInt64(bitPattern: state.readAt))
        addCount(state.previousFeeds.count)
        for previous in state.previousFeeds {
            add(previous.feed)
            add(previous.end)
        }
    }
}

/// Decodes records. Throws for invalid bytes, and never reads past their end.
struct ChangeRecordReader {
    struct Malformed: Error {}

    private let bytes: [UInt8]
    private var offset: Int
    private let end: Int

    init(_ bytes: [UInt8], from offset: Int, to end: Int) { (self.bytes, self.offset, self.end) = (bytes, offset, end) }

    mutating func next() throws(Malformed) -> ChangeRecord? {
        guard offset < end else { return nil }
        let kind = bytes[offset]
        offset += 1
        switch kind {
        case 1: return .start(reserved: try number(), machine: try text())
        case 2: return .database(try short(), name: try text(), try state())
        case 3:
            let (database, sequence, version) = (try short(), try number(), try version())
            return .key(database, key: try text(), sequence: sequence, version)
        case 4: return .purge(try short(), try version())
        case 5:
            let (database, version) = (try short(), try version())
            var tags: [[UInt8]] = []
            for _ in 0..<(try short()) { tags.append(try text()) }
            return .purgeTags(database, tags, version)
        case 6: return .foreignPurge(try short(), try version())
        case 7: return .anew(try short(), feed: try number())
        case 8: return .deleted(try short())
        case 9: return .read(try short(), at: Int64(bitPattern: try number()))
        case 10: return .reserved(try number())
        case 11: return .changing
        case 12: return .changed
        case 13: return .closed
        case 14:
            let (database, version) = (try short(), try version())
            return .purgePrefix(database, try text(), version)
        default: throw Malformed()
        }
    }

    private mutating func integer(_ count: Int) throws(Malformed) -> UInt64 {
        guard count <= end - offset else { throw Malformed() }
        var value: UInt64 = 0
        for byte in bytes[offset..<(offset + count)] { value = value << 8 | UInt64(byte) }
        offset += count
        return value
    }

    private mutating func number() throws(Malformed) -> UInt64 { try integer(8) }

    private mutating func short() throws(Malformed) -> UInt32 { UInt32(truncatingIfNeeded: try integer(4)) }

    private mutating func text() throws(Malformed) -> [UInt8] {
        let count = Int(try short())
        guard count <= end - offset else { throw Malformed() }
        defer { offset += count }
        return Array(bytes[offset..<(offset + count)])
    }

    private mutating func version() throws(Malformed) -> ChangeVersion {
        let time = Int64(bitPattern: try number())
        return ChangeVersion(time: time, sequence: try number())
    }

    private mutating func place() throws(Malformed) -> ChangePlace {
        let (sequence, step) = (try number(), try number())
        guard step <= UInt64(Int.max) else { throw Malformed() }
        return ChangePlace(sequence, Int(step))
    }

    private mutating func state() throws(Malformed) -> FeedState {
        let (feed, last, purge) = (try number(), try place(), try version())
        var state = FeedState(
            feed: feed, last: last, purge: purge.time == 0 ? nil : purge, readAt: Int64(bitPattern: try number()))
        for _ in 0..<(try short()) { state.previousFeeds.append(PreviousFeed(feed: try number(), end: try place())) }
        return state
    }
}
