/// A list of rows with distinct keys. Finding a row by its key, and a place by its index, takes about the square root of
/// the number of rows, because the rows are in blocks.
struct RowBlocks<Value> {
    struct Row {
        let key: [UInt8]
        var value: Value
    }

    /// The blocks by their numbers. Some may be empty.
    private var blocks: [[Row]] = []
    /// The numbers of the blocks, in the order of the list.
    private var order: [Int] = []
    /// The number of the block of each key.
    private var numbers: [[UInt8]: Int] = [:]

    /// The maximum number of rows in a block.
    static var blockCountMax: Int { 128 }

    init(_ rows: [Row]) {
        for start in stride(from: 0, to: rows.count, by: Self.blockCountMax / 2) {
            add(rows[start..<min(start + Self.blockCountMax / 2, rows.count)], at: order.count)
        }
    }

    /// The number of rows in each block, in order.
    var blockCounts: [Int] { order.map { blocks[$0].count } }

    private mutating func add(_ rows: ArraySlice<Row>, at place: Int) {
        for row in rows { numbers[row.key] = blocks.count }
        order.insert(blocks.count, at: place)
        blocks.append(Array(rows))
    }

    mutating func remove(_ key: [UInt8]) {
        guard let number = numbers.removeValue(forKey: key) else { return }
        blocks[number].removeAll { $0.key == key }
    }

    /// Inserts a row whose key is not in the list; at the end if the index is larger.
    mutating func insert(_ row: Row, at index: Int) {
        if order.isEmpty { add([], at: 0) }
        var (place, rest) = (0, index)
        while place + 1 < order.count, rest > blocks[order[place]].count {
            rest -= blocks[order[place]].count
            place += 1
        }
        let number = order[place]
        blocks[number].insert(row, at: min(rest, blocks[number].count))
        numbers[row.key] = number
        guard blocks[number].count > Self.blockCountMax else { return }
        let second = blocks[number][(Self.blockCountMax / 2)...]
        blocks[number].removeLast(second.count)
        add(second, at: place + 1)
    }

    /// Calls a function with each row, in order.
    mutating func updateEach(_ body: (inout Row) throws -> Void) rethrows {
        for number in order { for index in blocks[number].indices { try body(&blocks[number][index]) } }
    }
}

extension RowBlocks: Sendable where Value: Sendable {}
extension RowBlocks.Row: Sendable where Value: Sendable {}
