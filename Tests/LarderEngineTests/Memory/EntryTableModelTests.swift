import LarderTestSupport
import Testing

@testable import LarderEngine

/// Random operations on a table of entries, compared with a model. The table's structures are verified after each one.
@Suite struct EntryTableModelTests {
    /// How keys are hashed, and which entries have blocks of their own.
    struct Setting: CustomTestStringConvertible {
        let name: String
        var pinnedBytesMin = Int.max
        var hash: @Sendable (UnsafeRawBufferPointer) -> Int = { Key.hash($0) }
        var keys = 200
        var sizes = [0...40, 0...300, 400...2500]

        var testDescription: String { name }
    }

    static let settings = [
        Setting(name: "usual"),
        Setting(name: "equal hashes", hash: { ($0.count % 5) << 4 }),
        Setting(name: "highest tags", hash: { ~0 ^ ($0.count % 3) << 4 }),
        Setting(name: "many pins", pinnedBytesMin: 100),
        Setting(name: "one size", keys: 600, sizes: [20...24]),
        Setting(name: "long", keys: 50, sizes: [0...9000]),
    ]

    @Test(arguments: settings) func randomOperationsAgreeWithAModel(setting: Setting) {
        var random = SeededGenerator(seed: testSeed())
        var model = EntryTableModel(setting)
        for _ in 0..<4000 {
            model.step(&random)
            model.table.verify()
        }
        model.compareAll()
    }

    @Test("a table that was filled at once takes as much memory as one that grew") func filledTablesAreCompact() {
        func byteCount(isFilled: Bool) -> Int {
            let table = TestTable()
            if isFilled { table.table.beginFilling() }
            for number in 0..<20_000 {
                table.keep("key:\(number)", Record(RecordHeader(storedAt: 1), payload: [1]).stored)
            }
            if isFilled { table.table.endFilling() }
            table.verify()
            return table.table.byteCount
        }
        #expect(byteCount(isFilled: true) <= byteCount(isFilled: false) + 20_000)
    }

    /// With entries of changing sizes, the pages take at most 15 % more than the entries.
    @Test func pagesAreFreedWhenSizesChange() {
        var random = SeededGenerator(seed: 5)
        let table = TestTable()
        var (number, worst) = (0, 0.0)
        for round in 0..<6 {
            let sizes = [20...60, 100...700, 10...20, 40...1500, 300...310, 20...200][round]
            for _ in 0..<8000 {
                number += 1
                let size = Int.random(in: sizes, using: &random)
                let payload = [UInt8](repeating: 1, count: size)
                table.keep("key:\(number)", Record(RecordHeader(storedAt: 1), payload: payload).stored)
                let other = "key:\(Int.random(in: 0...number, using: &random))"
                if let entry = table.entry(other) { table.table.touch(entry) }
                while table.table.memory.byteCount > 1 << 20 { _ = table.table.evict() }
            }
            let live = table.table.small.entryBytes + table.table.main.entryBytes
            worst = max(worst, Double(table.table.memory.byteCount) / Double(live))
        }
        table.verify()
        #expect(worst <= 1.15, "\(worst)")
        while table.table.evict() {}
        #expect(table.table.byteCount == 0)
    }
}

/// A table, and what it should contain.
private struct EntryTableModel {
    struct State: Equatable {
        var record: [UInt8]?
        var isDirty: Bool
        /// The number of the model that is attached; nil for none.
        var attached: Int?
    }

    final class Model: Sendable {
        let number: Int
        init(_ number: Int) { self.number = number }
    }

    let setting: EntryTableModelTests.Setting
    let table: TestTable
    var states: [String: State] = [:]
    /// The records in LevelDB, if they are known; empty for none.
    var disk: [String: [UInt8]] = [:]
    /// The index key that LevelDB has for each key, if that is known.
    var indexed: [String: ExpiryIndex.Slot] = [:]
    /// The records of each version that was seen.
    var versions: [String: [UInt64: [UInt8]]] = [:]
    var pinned: [(EntryPointer, record: [UInt8])] = []
    var sequence: UInt64 = 0
    var checkpoint: UInt64 = 0
    var rules = ExpiryIndex.Rules(.never)

    init(_ setting: EntryTableModelTests.Setting) {
        self.setting = setting
        table = TestTable(pinnedBytesMin: setting.pinnedBytesMin, hash: setting.hash)
    }

    mutating func step(_ random: inout SeededGenerator) {
        let number = Int.random(in: 0..<setting.keys, using: &random)
        let key = String(repeating: "k", count: number % 40 + (number % 97 == 0 ? 3000 : 0)) + "\(number)"
        sequence += 1
        switch Int.random(in: 0..<25, using: &random) {
        case 0..<4:
            let record = disk[key] ?? record(&random)
            if states[key] == nil {
                disk[key] = record
                states[key] = State(record: record.isEmpty ? nil : record, isDirty: false)
            }
            table.keep(key, record.isEmpty ? nil : record)
        case 4..<9: put(key, record(&random), isBlock: Int.random(in: 0..<10, using: &random) == 0)
        case 9..<11:
            table.remove(key, sequence: sequence)
            states[key] = State(record: nil, isDirty: true)
        case 11..<13: if let entry = table.entry(key) { table.table.touch(entry) }
        case 13..<16:
            _ = table.table.evict()
            forgetMissing(1)
        case 16: changeOne(key, &random)
        case 17: pinOrUnpin(key, &random)
        case 18:
            guard let entry = table.entry(key), entry.hasRecord else { break }
            table.table.attach(Attached(Model(number), madeBy: nil, outerBytes: 10), to: entry)
            states[key]?.attached = number
        case 19:
            switch Int.random(in: 0..<4, using: &random) {
            case 0: table.table.beginFilling()
            case 1: table.table.endFilling()
            default: table.table.compact()
            }
        case 20..<24: checkpointStep(&random)
        default: changeAll(&random)
        }
        compare(key)
        #expect(table.table.count == states.count)
        let dirtyCount = states.values.count { $0.isDirty }
        #expect(table.table.dirtyCount == dirtyCount)
    }

    private func record(_ random: inout SeededGenerator) -> [UInt8] {
        let size = Int.random(in: setting.sizes.randomElement(using: &random) ?? 0...0, using: &random)
        let byte = UInt8.random(in: .min ... .max, using: &random)
        let payload = [UInt8](repeating: byte, count: size)
        // Also bytes that are no record.
        if random.oneIn(30) { return [3] + payload }
        let now = random.oneIn(5) ? Int64.random(in: 0..<1 << 40, using: &random) : 1_800_000_000_000 + Int64(size)
        let lifetime = Int64.random(in: 1...100_000, using: &random)
        let rules: [DeadlineRule] = [
            .governed, .ownNever, .own(now + lifetime), .own(now + 60_000 * lifetime), .own(now + 1 << 30), .own(0),
        ]
        let header = RecordHeader(
            storedAt: now, rule: rules.randomElement(using: &random) ?? .governed,
            codec: random.oneIn(4) ? Codec(rawValue: byte) : .raw, grace: random.oneIn(5) ? lifetime : nil)
        let tags = random.oneIn(5) ? try? Tags(checking: [Array("tag".utf8)]).section(stamp: 7) : nil
        return Record(header, tags: tags ?? [], payload: payload).stored
    }

    private mutating func put(_ key: String, _ record: [UInt8], isBlock: Bool) {
        if isBlock {
            Key(key).withBytes { bytes in
                let entry = EntryBlock.make(bytes, recordCount: 1 + record.count)
                let place = PackedRecord.beginStored(at: entry.recordPlace)
                record.withUnsafeBytes { place.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
                table.table.put(entry, hash: setting.hash(bytes), sequence: sequence)
            }
        } else if let record = try? Record(parsing: record, nil) {
            Key(key).withBytes { bytes in
                record.stored.withUnsafeBytes { stored in
                    guard let view = try? RecordView(parsing: stored, nil) else { return }
                    table.table.put(bytes, hash: setting.hash(bytes), view, sequence: sequence)
                }
            }
        } else {
            table.put(key, record, sequence: sequence)
        }
        states[key] = State(record: record, isDirty: true)
    }

    /// Removes evicted keys from the model. They must have been clean.
    private mutating func forgetMissing(_ most: Int) {
        let gone = states.filter { table.entry($0.key) == nil }
        let areClean = gone.values.allSatisfy { !$0.isDirty }
        #expect(gone.count <= most && areClean)
        for key in gone.keys { states[key] = nil }
    }

    private mutating func changeOne(_ key: String, _ random: inout SeededGenerator) {
        guard let entry = table.entry(key) else { return }
        switch Int.random(in: 0..<3, using: &random) {
        case 0: table.table.demote(entry)
        case 1:
            table.table.forgetIndexed(entry)
            indexed[key] = nil
        default:
            table.table.forget(entry)
            if states[key]?.isDirty == false { states[key] = nil }
        }
    }

    private mutating func pinOrUnpin(_ key: String, _ random: inout SeededGenerator) {
        if let entry = table.entry(key), let record = entry.stored, pinned.count < 20, entry.pin() {
            #expect(record.count < setting.pinnedBytesMin || entry.pinnedRecord.map { Array($0) } == record)
            pinned.append((entry, record))
        } else if let index = pinned.indices.randomElement(using: &random) {
            let (entry, record) = pinned.remove(at: index)
            let present = entry.stored
            #expect(present == record)
            entry.unpin()
        }
    }

    private mutating func checkpointStep(_ random: inout SeededGenerator) {
        let table = table.table
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            forgetTaken()
            if Int.random(in: 0..<4, using: &random) == 0 {
                let seconds = Int.random(in: 1...100_000, using: &random)
                rules = ExpiryIndex.Rules(.seconds(Double(seconds)))
            }
            table.freeze(rules)
            checkpoint = sequence - min(sequence, UInt64.random(in: 0..<3, using: &random))
        case 1..<4:
            // LevelDB has the entries, so all older index keys but the latest are removed.
            let expires = Int.random(in: 0..<8, using: &random) == 0
            _ = table.takeFrozen(
                upTo: checkpoint, most: 20,
                { entry, indexed in
                    let key = entry.text
                    #expect(indexed == 0 || indexed == self.indexed[key])
                    guard let record = entry.stored, let header = entry.header(nil), !expires else {
                        self.indexed[key] = 0
                        disk[key] = []
                        states[key]?.record = nil
                        states[key]?.attached = nil
                        return .removal
                    }
                    let slot = rules.slot(header)
                    self.indexed[key] = slot
                    disk[key] = record
                    return .record(slot)
                }, left: { _, sequence in #expect(sequence > checkpoint) })
        case 4:
            guard table.frozenCount == 0 else { return }
            let keepsAll = Bool.random(using: &random)
            let written = entries(of: table.written).filter { $0.value.sequence <= checkpoint }
            while table.finishWritten(upTo: checkpoint, most: 7, keeps: { keepsAll || $0.keyCount % 2 == 0 }) {}
            for key in written.keys {
                if self.table.entry(key) == nil { states[key] = nil } else { states[key]?.isDirty = false }
            }
        default:
            forgetTaken()
            table.thaw()
        }
    }

    private func entries(of queue: EntryQueue<DirtyEntry>) -> [String: DirtyEntry] {
        var entries: [String: DirtyEntry] = [:]
        queue.forEachItem { entries[table.table.memory.entry($0.pointee.reference).text] = $0.pointee }
        return entries
    }

    /// After a failed checkpoint, it is unknown what LevelDB has of the entries.
    private mutating func forgetTaken() { for key in entries(of: table.table.written).keys { indexed[key] = nil } }

    private mutating func changeAll(_ random: inout SeededGenerator) {
        switch Int.random(in: 0..<40, using: &random) {
        case 0:
            table.table.removeAll()
            (states, disk, indexed) = ([:], [:], [:])
        case 1:
            table.table.forgetClean()
            forgetMissing(.max)
            let areDirty = states.values.allSatisfy(\.isDirty)
            #expect(areDirty)
        case 2:
            table.table.forgetIndexed()
        case 3:
            while table.table.evict() {}
            forgetMissing(.max)
        default:
            let before = states.values.count { $0.attached != nil }
            guard table.table.dropAttachment() else { break }
            for key in states.keys where table.entry(key)?.attachment == nil { states[key]?.attached = nil }
            let after = states.values.count { $0.attached != nil }
            #expect(after == before - 1)
        }
        table.released.release()
    }

    // MARK: Comparison

    private mutating func compare(_ key: String) {
        let (entry, state) = (table.entry(key), states[key])
        #expect((entry == nil) == (state == nil))
        guard let entry, let state else { return }
        let present = entry.stored
        #expect(present == state.record)
        #expect(entry.isDirty == state.isDirty)
        let attached = entry.attachment?.takeUnretainedValue().value(of: ObjectIdentifier(Model.self), madeBy: nil)
        #expect(attached?.load(as: Model.self).number == state.attached)
        // No two records of a key have the same version.
        guard let record = state.record else { return }
        let version = table.table.version(of: entry)
        let earlier = versions[key, default: [:]].updateValue(record, forKey: version)
        #expect(earlier == nil || earlier == record)
    }

    mutating func compareAll() { for key in states.keys { compare(key) } }
}

extension TestTable {
    /// Checks that slots, entries, queues and pages agree.
    func verify() {
        var (count, lastTag) = (0, UInt32(0))
        var sizes: [EntryPointer.Place: (count: Int, bytes: Int)] = [:]
        table.forEachSlot { tag, reference in
            let entry = table.memory.entry(reference)
            #expect(tag >= lastTag && tag == SlotTable.tag(table.hash(of: entry)))
            let found =
                switch entry.place {
                case .small: table.small[entry.position].pointee
                case .main: table.main[entry.position].pointee
                case .active: table.active[entry.position].pointee.reference
                case .written: table.written[entry.position].pointee.reference
                case .nowhere, .free: EntryReference(0)
                }
            #expect(found == reference)
            #expect(table.find(entry.key, hash: table.hash(of: entry)) == entry)
            let size = sizes[entry.place, default: (0, 0)]
            sizes[entry.place] = (size.count + 1, size.bytes + entry.byteCount)
            (count, lastTag) = (count + 1, tag)
        }
        #expect(count == table.count && count == table.memory.verify())
        func agree(_ place: EntryPointer.Place, _ count: Int, _ bytes: Int) {
            let size = sizes[place, default: (0, 0)]
            #expect(size.count == count && size.bytes == bytes)
        }
        agree(.small, table.small.count, table.small.entryBytes)
        agree(.main, table.main.count, table.main.entryBytes)
        agree(.active, table.active.count, table.active.entryBytes)
        agree(.written, table.written.count, table.written.entryBytes)
    }
}
