/// What one command does to the keys it named: it sees the entries as they are and leaves absolute results.
///
/// Valid only inside the closure of ``Database/update(_:loading:now:durability:fillCache:_:)``.
package struct Update {
    package private(set) var keys: [Key]
    package let now: Int64
    package let rules: FreshnessRules
    let generation: UInt32
    /// What is stored, expired or not, in the order of `keys`. Empty when the update does not load.
    private var loaded: [Record?]
    /// The keys whose record cannot be read, where an update loads headers only.
    private(set) var unreadable: Set<Int> = []
    /// How long the records are of which only the header is here, in the order of `keys`; empty where an update loads more.
    private var byteCounts: [Int] = []
    /// Where the record of each key stands in `loaded`, if a key is named twice: with its first mention.
    private var slots: [Int]?
    /// Changes of `loaded` by the command of a transaction that runs now, so that they can be rolled back; nil outside.
    private var undo: [(slot: Int, record: Record?)]?
    private(set) var operations: [CommitOperation] = []
    /// By what the following operations are done.
    package var origin = WriteOrigin()
    /// Where in a transaction they stand.
    var step = 0
    /// Bytes of the values that were built here, rather than brought.
    package private(set) var builtBytes = 0

    /// Takes what is stored, in the order of `keys`; nothing for a command that does not load.
    /// - Parameter slots: from ``slotsOfRepeatedKeys(_:)``.
    /// - Throws: where the command needs a whole record that cannot be read.
    init(
        _ keys: [Key], slots: [Int]?, _ now: Int64, _ state: DatabaseState, _ loading: Loading,
        _ values: [ColdReads.Value]
    ) throws(LarderError) {
        self.keys = keys
        self.slots = slots
        self.now = now
        rules = state.rules
        generation = state.generation
        loaded = []
        loaded.reserveCapacity(values.count)
        if loading == .headers { byteCounts = Array(repeating: 0, count: values.count) }
        for (index, value) in values.enumerated() {
            switch value {
            case .record(let record): loaded.append(record)
            case .header(let header, let byteCount):
                loaded.append(Record(header, payload: EmptyCollection()))
                byteCounts[index] = byteCount
            case .unreadable(let error):
                guard loading == .headers else { throw error }
                loaded.append(nil)
                unreadable.insert(index)
            }
        }
    }

    /// Where each key is named first; nil where no key is named twice. To be called without a lock: of a million keys it
    /// takes tenths of a second.
    static func slotsOfRepeatedKeys(_ keys: [Key]) -> [Int]? {
        guard keys.count > 1 else { return nil }
        // Positions of keys, found by the hashes that they have, with linear probing; at most half of the places are taken.
        var capacity = 4
        while capacity < 2 * keys.count { capacity *= 2 }
        var places = [Int32](repeating: -1, count: capacity)
        var slots: [Int]?
        for index in keys.indices {
            var place = keys[index].hash & (capacity - 1)
            while places[place] >= 0, keys[Int(places[place])] != keys[index] { place = (place + 1) & (capacity - 1) }
            if places[place] < 0 {
                places[place] = Int32(index)
            } else {
                if slots == nil { slots = Array(keys.indices) }
                slots?[index] = Int(places[place])
            }
        }
        return slots
    }

    private func slot(_ index: Int) -> Int { slots?[index] ?? index }

    /// The fresh entry of the key at `index`, as left by what this update did so far.
    package func current(_ index: Int) -> Record? {
        loaded[slot(index)].flatMap { rules.freshness($0.header, now: now) == .fresh ? $0 : nil }
    }

    /// What is stored under the key at `index`, expired or not.
    func stored(_ index: Int) -> Record? { loaded[slot(index)] }

    /// The bytes that the entry at `index` takes in LevelDB, as it was when the update began.
    func byteCount(_ index: Int) -> Int {
        keys[index].stored.count + (byteCounts.isEmpty ? stored(index)?.stored.count ?? 0 : byteCounts[index])
    }

    /// Whether anything is stored under the key at `index`, expired or not.
    package func isStored(_ index: Int) -> Bool { loaded[slot(index)] != nil }

    /// Stores a record under the key at `index`.
    package mutating func put(_ index: Int, _ record: Record) {
        operations.append(.put(keys[index], record, changeNote(index)))
        note(index, record)
    }

    /// Lets the fresh entry at `index` stay for ever, whatever the database's policy becomes.
    /// - Returns: whether it had a deadline. Where it had none, nobody is told that it was written.
    package mutating func persist(_ index: Int) -> Bool {
        guard let record = current(index) else { return false }
        let hadDeadline = rules.deadline(record.header) != nil
        guard record.header.rule != .ownNever else { return false }
        var note = changeNote(index)
        note.isUnseen = !hadDeadline
        let kept = record.with(rule: .ownNever)
        operations.append(.put(keys[index], kept, note))
        self.note(index, kept)
        return hadDeadline
    }

    /// Stores a payload under the key at `index`, stamped with this update's time.
    package mutating func put(
        _ index: Int, payload: UnsafeRawBufferPointer, rule: DeadlineRule = .governed, codec: Codec = .raw
    ) {
        let header = RecordHeader(storedAt: now, rule: rule, codec: codec, generation: generation)
        put(index, Record(header, payload: payload))
    }

    /// As ``put(_:payload:rule:codec:)``, where the payload may have been written ahead: then this is all that the update
    /// does, and it is not asked for the entry afterwards.
    /// - Parameter long: what was made of the payload; nil where that was not worth it.
    package mutating func put(
        _ index: Int, payload: UnsafeRawBufferPointer, long: LargeValue?, rule: DeadlineRule = .governed,
        codec: Codec = .raw
    ) {
        let header = RecordHeader(storedAt: now, rule: rule, codec: codec, generation: generation)
        guard let long, long.headerCount == header.byteCount, keys == [long.key], operations.isEmpty else {
            return put(index, payload: payload, rule: rule, codec: codec)
        }
        operations.append(.putLarge(long, header, changeNote(index)))
    }

    /// Stores the record of another key, or of another database: its codec stays, and its storedAt and its rule where the
    /// rules of this database allow (``FreshnessRules/taking(_:)``).
    package mutating func place(_ index: Int, _ record: Record) {
        var header = rules.taking(record.header)
        header.generation = generation
        guard header != record.header else { return put(index, record) }
        put(index, Record(header, payload: record.payload))
    }

    /// Changes the value of the key at `index` in place: it gets `count` bytes, the former ones first and zeros behind them,
    /// and then `edit` writes into it. A fresh entry keeps its deadline rule and its codec; where there is none, the new one
    /// is governed. Either is stamped with this update's time.
    package mutating func change(_ index: Int, count: Int, _ edit: (UnsafeMutableRawBufferPointer) -> Void) {
        let former = current(index)
        let header = RecordHeader(
            storedAt: now, rule: former?.header.rule ?? .governed, codec: former?.header.codec ?? .raw,
            generation: generation)
        builtBytes += count
        put(index, Record(header, count: count, former: former, edit))
    }

    /// Counts a value that was built for ``put(_:payload:rule:codec:)`` among ``builtBytes``.
    package mutating func noteBuilt(_ count: Int) { builtBytes += count }

    /// Removes the key at `index`, whatever is stored there.
    package mutating func remove(_ index: Int) {
        operations.append(.remove(keys[index], changeNote(index)))
        note(index, nil)
    }

    private func changeNote(_ index: Int) -> ChangeNote {
        if loaded.isEmpty { return ChangeNote(origin: origin, step: step) }
        let former = current(index).map { EntryChange.Former.fresh($0.header.rule) } ?? .absent
        return ChangeNote(origin: origin, former: former, step: step)
    }

    /// Two indices may name the same key: what one wrote the other sees.
    private mutating func note(_ index: Int, _ record: Record?) {
        guard !loaded.isEmpty else { return }
        let slot = slot(index)
        undo?.append((slot, loaded[slot]))
        loaded[slot] = record
    }

    /// Runs one command of a transaction, which sees only its own keys: those at `positions` among this update's keys,
    /// which are all different. What `body` throws undoes what that command did, and nothing else.
    mutating func narrowed(
        to positions: [Int], _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) {
        let (allKeys, allSlots, count) = (keys, slots, operations.count)
        keys = positions.map { allKeys[$0] }
        slots = positions
        undo = []
        defer {
            keys = allKeys
            slots = allSlots
            undo = nil
        }
        do throws(LarderError) {
            try body(&self)
        } catch {
            operations.removeLast(operations.count - count)
            for change in (undo ?? []).reversed() { loaded[change.slot] = change.record }
            throw error
        }
    }
}
