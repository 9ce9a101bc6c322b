import LarderQueries
import LarderTestSupport
import Testing

@testable import LarderQuerying

/// The steps of ``LiveRows``, compared with a sorted list of all entries.
@Suite struct LiveRowsTests {
    private typealias Entries = [[UInt8]: Int]

    private static func row(_ key: [UInt8], _ value: Int, _ text: [UInt8]? = nil) -> LiveRows.Row {
        LiveRows.Row(position: QueryPosition(values: [.number(.integer(Int128(value)))], key: key), text: text)
    }

    private static func sorted(_ entries: Entries) -> [LiveRows.Row] {
        let order = QueryOrder([QueryOrder.Part(.key, isDescending: false)])
        return entries.map { row($0.key, $0.value) }.sorted { order.precedes($0.position, $1.position) }
    }

    private static func apply(_ steps: [LiveRows.Step], to list: inout [[UInt8]]) {
        for step in steps {
            switch step {
            case .forgotten: break
            case .out(let key, _):
                #expect(list.contains(key), "a row that is not there leaves")
                list.removeAll { $0 == key }
            case .set(let key, let index):
                list.removeAll { $0 == key }
                #expect(index <= list.count)
                list.insert(key, at: min(index, list.count))
            }
        }
    }

    @Test func stepsLeadToTheSortedRows() {
        var random = SeededGenerator(seed: testSeed())
        var refills = 0
        for _ in 0..<20 {
            let (skip, limit) = (random.oneIn(2) ? 0 : random.below(5), 1 + random.below(6))
            var rows = LiveRows(
                QueryOrder([QueryOrder.Part(.key, isDescending: false)]), skip: skip, limit: limit)
            var entries: Entries = [:]
            for _ in 0..<random.below(120) { entries[[UInt8(random.below(200))]] = random.below(50) }
            let first = Self.sorted(entries)
            rows.replace(Array(first.prefix(rows.capacity)), isCut: first.count > rows.capacity)
            var list = rows.visible
            // Until few entries are left.
            for _ in 0..<300 {
                let key = [UInt8(random.below(200))]
                if random.below(10) < 2 || entries.isEmpty {
                    entries[key] = random.below(50)
                } else if let gone = entries.keys.sorted(by: { $0[0] < $1[0] }).randomElement(using: &random) {
                    entries[random.oneIn(2) ? key : gone] = nil
                }
                // The keys that may have changed.
                for key in Set([key] + rows.all.map(\.key)).union(entries.keys) {
                    let row = entries[key].map { Self.row(key, $0) }
                    Self.apply(rows.update(key, row, .removed, isStored: random.oneIn(9)), to: &list)
                }
                let all = Self.sorted(entries)
                if rows.needsRun {
                    refills += 1
                    let found = Array(all.prefix(rows.capacity))
                    Self.apply(rows.refill(found, isCut: all.count > rows.capacity), to: &list)
                }
                let expected = all.dropFirst(skip).prefix(limit).map(\.key)
                #expect(rows.visible == expected && list == expected)
                guard list == expected else { return }
            }
        }
        #expect(refills > 0)
    }

    @Test func aRowThatMovesWithinTheResultIsOneStep() {
        var rows = LiveRows(QueryOrder([QueryOrder.Part(.key, isDescending: false)]), skip: 0, limit: 2)
        func row(_ key: UInt8, _ value: Int, _ text: [UInt8]? = nil) -> LiveRows.Row { Self.row([key], value, text) }
        rows.replace([row(1, 1), row(2, 2), row(3, 3)], isCut: false)
        #expect(rows.update([1], row(1, 1), .changed, isStored: true) == [.set(key: [1], index: 0)])
        #expect(rows.update([1], row(1, 1), .changed, isStored: false) == [])
        #expect(
            rows.update([1], row(1, 9), .changed, isStored: true)
                == [.forgotten(key: [1]), .out(key: [1], .moved), .set(key: [3], index: 1)])
        #expect(rows.update([1], row(1, 0), .changed, isStored: true).last == .set(key: [1], index: 0))
        #expect(rows.visible == [[1], [2]])
    }

    @Test("rows have the texts for which they were found; the same text again is no change")
    func rowsKeepTheirTexts() {
        var rows = LiveRows(QueryOrder([QueryOrder.Part(.key, isDescending: false)]), skip: 0, limit: 1)
        rows.replace([Self.row([1], 1, [11]), Self.row([2], 2, [12])], isCut: false)
        let size = rows.byteCount
        #expect(rows.update([1], Self.row([1], 1, [11]), .changed, isStored: true) == [])
        #expect(rows.update([1], Self.row([1], 1, [11, 11]), .changed, isStored: true) == [.set(key: [1], index: 0)])
        #expect(rows.byteCount == size + 1)
        #expect(rows.update([1], nil, .removed, isStored: false).last == .set(key: [2], index: 0))
        #expect(rows.text([2]) == [12] && rows.text([1]) == nil)
        #expect(rows.update([2], nil, .removed, isStored: false).count == 2)
        #expect(rows.byteCount == 0)
    }
}
