import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the table of entries in memory: which entries it keeps and evicts, and its hit ratio.
@Suite struct EntryTableTests {
    /// Returns the stored bytes of a record with a payload of `bytes` bytes.
    private static func record(_ bytes: Int) -> [UInt8] {
        Record(RecordHeader(storedAt: 1), payload: [UInt8](repeating: 7, count: bytes)).stored
    }

    @Test func entriesAreAddedReplacedAndRemoved() {
        let table = TestTable()
        #expect(table.payloadCount("a") == nil)
        table.keep("a", Self.record(10))
        #expect(table.entry("a")?.byteCount == 40)
        #expect(table.table.memory.byteCount >= 40)
        #expect(table.payloadCount("a") == 10)
        // A record that was read from LevelDB never replaces an entry that is already in the table.
        table.keep("a", Self.record(20))
        #expect(table.payloadCount("a") == 10)
        table.put("a", Self.record(2000), sequence: 1)
        #expect(table.payloadCount("a") == 2000)
        #expect(table.table.count == 1)
        #expect(table.table.dirtyCount == 1)
        #expect(!table.table.evict())
        table.checkpoint(upTo: 1)
        #expect(table.table.evict())
        #expect(table.table.byteCount == 0 && table.table.count == 0)
        #expect(!table.table.evict())
    }

    @Test func entriesRewrittenDuringACheckpointStayDirty() {
        let table = TestTable()
        for key in ["a", "b", "c", "d"] { table.put(key, Self.record(10), sequence: 1) }
        table.remove("d", sequence: 2)
        table.table.freeze()
        table.put("a", Self.record(11), sequence: 3)
        table.put("e", Self.record(11), sequence: 4)
        var taken: [String] = []
        var left: [UInt64] = []
        func takeOne() -> Bool {
            table.table.takeFrozen(
                upTo: 2, most: 1,
                { entry, _ in
                    taken.append(entry.text)
                    return Self.taken(entry)
                }, left: { left.append($1) })
        }
        #expect(takeOne())
        table.put("b", Self.record(500), sequence: 5)
        while takeOne() {}
        #expect(taken.sorted() == ["c", "d"])
        #expect(left.sorted() == [3, 5])
        table.put("c", Self.record(12), sequence: 6)
        while table.table.finishWritten(upTo: 2, most: 1, keeps: { _ in true }) {}
        // "d" is clean and known to be absent. The other entries wait for the next checkpoint.
        #expect(table.table.dirtyCount == 4)
        #expect(table.table.count == 5)
        #expect(table.entry("d")?.isAbsentInLevelDB == true)
        #expect(table.table.evict())
        #expect(!table.table.evict())
        table.checkpoint(upTo: 6)
        #expect(table.table.dirtyCount == 0)
        #expect(table.payloadCount("b") == 500)
    }

    /// The eviction from the disk and the sweep remove index keys of entries. If a checkpoint has just written such an
    /// entry, the next one must write its index key again.
    @Test(arguments: [false, true]) func aRemovedIndexKeyIsForgottenDuringACheckpoint(isRemoved: Bool) throws {
        let table = TestTable()
        let rules = ExpiryIndex.Rules(.never)
        let header = RecordHeader(storedAt: 1, rule: .own(60_000))
        let record = Record(header, payload: [1]).stored
        var known: [ExpiryIndex.Slot] = []
        func take(upTo sequence: UInt64) {
            table.put("a", record, sequence: sequence)
            table.table.freeze(rules)
            _ = table.table.takeFrozen(
                upTo: sequence, most: 1,
                { _, indexed in
                    known.append(indexed)
                    return .record(rules.slot(header))
                }, left: { _, _ in })
        }
        take(upTo: 1)
        if isRemoved { table.table.forgetIndexed(try #require(table.entry("a"))) }
        _ = table.table.finishWritten(upTo: 1, most: 1, keeps: { _ in true })
        take(upTo: 2)
        #expect(known == [0, isRemoved ? 0 : rules.slot(header)])
    }

    @Test func aFailedCheckpointIsRepeated() {
        let table = TestTable()
        for key in ["a", "b"] { table.put(key, Self.record(10), sequence: 1) }
        table.table.freeze()
        _ = table.table.takeFrozen(upTo: 1, most: 1, { _, _ in .record(1027) }, left: { _, _ in })
        table.table.thaw()
        var taken: [String] = []
        table.table.freeze()
        while table.table.takeFrozen(
            upTo: 1, most: 10,
            {
                taken.append($0.text)
                #expect($1 == 0)
                return .record(0)
            }, left: { _, _ in })
        {}
        #expect(taken.sorted() == ["a", "b"])
    }

    /// When an entry changes or is removed, the decoded model that is attached to it is dropped.
    @Test func decodedModelsAreDroppedWithTheirEntry() {
        final class Model {}
        let table = TestTable()
        weak var attached: Model?
        /// The attached model; nil if it was released. Reading this property first releases all dropped models, which
        /// no longer count towards the memory.
        var model: Model? {
            table.released.release()
            #expect((table.table.attachedByteCount >= 1000) == (attached != nil))
            return attached
        }
        func attach(_ key: String) {
            let new = Model()
            attached = new
            let attachment = Attached(new, madeBy: nil, outerBytes: 1000)
            if let entry = table.entry(key) { table.table.attach(attachment, to: entry) }
        }
        table.keep("a", Self.record(10))
        attach("a")
        #expect(model != nil)
        table.put("a", Self.record(10), sequence: 1)
        #expect(model == nil)
        attach("a")
        table.remove("a", sequence: 2)
        #expect(model == nil)
        table.checkpoint(upTo: 2)
        table.keep("b", Self.record(1))
        attach("b")
        while table.table.evict() {}
        #expect(model == nil)
        table.keep("c", Self.record(1))
        attach("c")
        table.table.removeAll()
        #expect(model == nil)
    }

    /// What a checkpoint without index keys writes for an entry.
    static func taken(_ entry: EntryPointer) -> EntryTable.Taken { entry.hasRecord ? .record(0) : .removal }

    /// Returns the hit ratio of a table with `capacity` entries when `keys` are read. Each missing key is added, as in
    /// a cache.
    private static func hitRatio(_ keys: [Int], capacity: Int) -> Double {
        let table = TestTable()
        let record = record(1)
        var hits = 0
        for key in keys {
            let key = "\(key)"
            if let entry = table.entry(key) {
                table.table.touch(entry)
                hits += 1
                continue
            }
            table.keep(key, record)
            while table.table.count > capacity { _ = table.table.evict() }
        }
        return Double(hits) / Double(keys.count)
    }

    /// Returns the hit ratio of SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is Simpler than LRU", NSDI 2024),
    /// for comparison.
    private static func sieveHitRatio(_ keys: [Int], capacity: Int) -> Double {
        var order: [Int] = []  // The newest last.
        var visited: [Int: Bool] = [:]
        var hand = 0
        var hits = 0
        for key in keys {
            if visited[key] != nil {
                hits += 1
                visited[key] = true
                continue
            }
            if order.count == capacity {
                if hand >= order.count { hand = 0 }
                while visited[order[hand]] == true {
                    visited[order[hand]] = false
                    hand = (hand + 1) % order.count
                }
                visited[order[hand]] = nil
                order.remove(at: hand)
            }
            order.append(key)
            visited[key] = false
        }
        return Double(hits) / Double(keys.count)
    }

    private static func lruHitRatio(_ keys: [Int], capacity: Int) -> Double {
        var order: [Int] = []
        var hits = 0
        for key in keys {
            if let place = order.lastIndex(of: key) {
                hits += 1
                order.remove(at: place)
            } else if order.count == capacity {
                order.removeFirst()
            }
            order.append(key)
        }
        return Double(hits) / Double(keys.count)
    }

    /// Returns random keys with a Zipf distribution: the probability of key *k* is proportional to 1 / k^skew.
    private static func zipf(_ skew: Double, keys: Int, count: Int, _ generator: inout SeededGenerator) -> [Int] {
        var sums: [Double] = []
        var sum = 0.0
        for key in 1...keys {
            sum += 1 / power(Double(key), skew)
            sums.append(sum)
        }
        return (0..<count).map { _ in
            let point = Double.random(in: 0..<sum, using: &generator)
            var (low, high) = (0, sums.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] <= point { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }

    /// Returns `base` to the power 0.8 or 1, as a product of square roots: 0.8 is 1/2 + 1/4 + 1/32 + 1/64 + 1/512 and a
    /// little.
    private static func power(_ base: Double, _ exponent: Double) -> Double {
        var result = exponent >= 1 ? base : 1
        var rest = exponent >= 1 ? exponent - 1 : exponent
        var root = base
        for _ in 0..<30 {
            root = root.squareRoot()
            rest *= 2
            if rest >= 1 {
                result *= root
                rest -= 1
            }
        }
        return result
    }

    @Test(arguments: [0.8, 1.0]) func theHitRatioIsAtLeastThatOfTheSieveAlgorithm(skew: Double) {
        var generator = SeededGenerator(seed: 7)
        let keys = Self.zipf(skew, keys: 5_000, count: 30_000, &generator)
        let ours = Self.hitRatio(keys, capacity: 500)
        let sieve = Self.sieveHitRatio(keys, capacity: 500)
        #expect(ours >= sieve - 0.005, "ours \(ours), SIEVE \(sieve)")
        #expect(ours > Self.lruHitRatio(keys, capacity: 500))
    }

    /// A scan over keys that are read only once must not evict frequently read entries.
    @Test func aScanDoesNotEvictHotEntries() {
        var generator = SeededGenerator(seed: 8)
        let hot = Self.zipf(1, keys: 5_000, count: 20_000, &generator)
        var polluted: [Int] = []
        for (position, key) in hot.enumerated() {
            polluted.append(key)
            polluted.append(1_000_000 + position)
        }
        let ours = Self.hitRatio(polluted, capacity: 500)
        let sieve = Self.sieveHitRatio(polluted, capacity: 500)
        #expect(ours >= sieve - 0.005, "ours \(ours), SIEVE \(sieve)")
        #expect(ours > Self.lruHitRatio(polluted, capacity: 500) * 1.1)
    }

    /// Compares the table with a dictionary after random operations: contents, byte counts and lists.
    @Test func randomOperationsAgreeWithADictionary() {
        var generator = SeededGenerator(seed: testSeed())
        let table = TestTable()
        /// The expected entries by key: the payload size, nil if removed, and whether the entry is not yet in LevelDB.
        var model: [Int: (size: Int?, isDirty: Bool)] = [:]
        var sequence: UInt64 = 0
        for _ in 0..<20_000 {
            let key = Int.random(in: 0..<300, using: &generator)
            let size = Int.random(in: 0..<300, using: &generator)
            switch Int.random(in: 0..<12, using: &generator) {
            case 0..<3:
                table.keep("\(key)", Self.record(size))
                if model[key] == nil { model[key] = (size, false) }
            case 3..<6:
                sequence += 1
                table.put("\(key)", Self.record(size), sequence: sequence)
                model[key] = (size, true)
            case 6:
                sequence += 1
                table.remove("\(key)", sequence: sequence)
                model[key] = (nil, true)
            case 7..<10:
                let entry = table.entry("\(key)")
                #expect((entry == nil) == (model[key] == nil))
                #expect(table.payloadCount("\(key)") == model[key]?.size)
                if let entry { table.table.touch(entry) }
            case 10:
                table.checkpoint(upTo: sequence)
                for key in model.keys { model[key]?.isDirty = false }
            default:
                if table.table.evict() {
                    let gone = model.keys.filter { table.entry("\($0)") == nil }
                    #expect(gone.count == 1)
                    for key in gone {
                        #expect(model[key]?.isDirty == false)
                        model[key] = nil
                    }
                }
            }
            #expect(table.table.count == model.count)
            #expect(table.table.dirtyCount == model.values.count { $0.isDirty })
            table.verify()
        }
        for key in 0..<300 { #expect(table.payloadCount("\(key)") == model[key]?.size ?? nil) }
    }

    /// Keys with equal or similar hashes are distinguished, and found after others were removed.
    @Test func keysWithCollidingHashesAreDistinguished() {
        let numbers = { (key: UnsafeRawBufferPointer) in Int(String(decoding: key.dropFirst(), as: UTF8.self)) ?? 0 }
        let table = EntryTable(hash: { numbers($0) % 3 << 4 })
        func bytes(_ number: Int) -> [UInt8] { Array("k\(number)".utf8) }
        for number in 0..<100 {
            bytes(number).withUnsafeBytes { key in
                Self.record(number).withUnsafeBytes { table.keep(key, hash: number % 3 << 4, $0) }
            }
        }
        for number in stride(from: 0, to: 100, by: 2) {
            bytes(number).withUnsafeBytes { key in
                if let entry = table.find(key, hash: number % 3 << 4) { table.forget(entry) }
            }
        }
        for number in 0..<100 {
            let found = bytes(number).withUnsafeBytes { table.find($0, hash: number % 3 << 4)?.stored?.count }
            #expect(found == (number % 2 == 0 ? nil : number + 16))
        }
    }
}

/// A table of entries that takes strings as keys.
struct TestTable {
    let released: ReleaseQueue
    let table: EntryTable
    private let hash: (UnsafeRawBufferPointer) -> Int

    init(pinnedBytesMin: Int = .max, hash: @escaping (UnsafeRawBufferPointer) -> Int = { Key.hash($0) }) {
        released = ReleaseQueue()
        table = EntryTable(released: released, pinnedBytesMin: pinnedBytesMin, hash: hash)
        self.hash = hash
    }

    func entry(_ key: String) -> EntryPointer? {
        let key = Key(key)
        return key.withBytes { table.find($0, hash: hash($0)) }
    }

    func payloadCount(_ key: String) -> Int? { entry(key)?.stored.map { $0.count - 16 } }

    func keep(_ key: String, _ record: [UInt8]?) {
        let key = Key(key)
        guard let record else { return key.withBytes { table.keep($0, hash: hash($0), nil) } }
        key.withBytes { bytes in record.withUnsafeBytes { table.keep(bytes, hash: hash(bytes), $0) } }
    }

    func put(_ key: String, _ record: [UInt8], sequence: UInt64) {
        let key = Key(key)
        key.withBytes { bytes in
            record.withUnsafeBytes { table.put(bytes, hash: hash(bytes), stored: $0, sequence: sequence) }
        }
    }

    func remove(_ key: String, sequence: UInt64) {
        let key = Key(key)
        key.withBytes { table.remove($0, hash: hash($0), sequence: sequence) }
    }

    func checkpoint(upTo sequence: UInt64) {
        table.freeze()
        while table.takeFrozen(upTo: sequence, most: 7, { entry, _ in EntryTableTests.taken(entry) }, left: { _, _ in })
        {}
        while table.finishWritten(upTo: sequence, most: 7, keeps: { _ in true }) {}
    }
}

extension EntryPointer {
    var text: String { String(decoding: key, as: UTF8.self) }

    /// The record as stored; nil if there is none.
    var stored: [UInt8]? {
        var bytes: [UInt8] = []
        appendStored(to: &bytes)
        return hasRecord ? bytes : nil
    }
}
