/// Measures reads inside one process.
///
/// The stores take turns: a slice of the keys is read from one store, then the same slice from the next. So other work
/// of the machine affects all stores equally. Each slice is a sample.
///
/// Before that, the tables of all LevelDB stores are merged by the same call. Otherwise the number of levels to search
/// would depend on the state of the compactions after writing.
extension EmbeddedSuite {
    /// A store that was filled and closed.
    struct Written {
        let name: String
        let directory: String
        let make: (String) throws -> any EmbeddedStore
    }

    private static let sliceLength = 1000

    func measureReading(_ written: [Written], _ valueBytes: Int, into results: Results) throws {
        for store in written { try RawStore.mergeTables(below: store.directory) }
        var stores: [(name: String, store: any EmbeddedStore)] = []
        defer { for (_, store) in stores { try? store.close() } }
        for store in written {
            attempt(store.name, valueBytes, results) { stores.append((store.name, try store.make(store.directory))) }
        }
        Clocks.settle { Clocks.ownProcessor() }
        for operation in [Operation.firstGet, .get, .getAbsent] {
            let slices = order.chunks(of: Self.sliceLength)
            for (number, slice) in slices.enumerated() {
                try Interruption.check()
                for (name, store) in stores.rotated(by: number) {
                    let isRead = attempt(name, valueBytes, results) {
                        let figures = try Stopwatch.measureOnly(operations: slice.count) {
                            try Self.read(operation, slice, store)
                        }
                        results.add(Self.table(operation, valueBytes), name, figures)
                    }
                    if !isRead { stores.removeAll { $0.name == name } }
                }
            }
        }
    }

    /// - Returns: false if `body` failed; the failure is recorded.
    @discardableResult
    private func attempt(_ name: String, _ valueBytes: Int, _ results: Results, _ body: () throws -> Void) -> Bool {
        do {
            try body()
            return true
        } catch {
            results.fail("\(name), \(valueBytes) B", error)
            return false
        }
    }

    static func read(_ operation: Operation, _ slice: ArraySlice<Int>, _ store: any EmbeddedStore) throws {
        if operation == .getAbsent {
            for index in slice where try store.getAbsent(index) {
                throw BenchError("\(Keys.text(index))- was never stored and is there")
            }
        } else {
            for index in slice {
                guard try store.get(index) else { throw BenchError("the entry \(Keys.text(index)) is not there") }
            }
        }
    }
}

extension RawStore {
    /// Merges the tables of every LevelDB database in a directory and its subdirectories. All databases must be closed.
    static func mergeTables(below directory: String) throws(BenchError) {
        let names = TemporaryTree.names(in: directory)
        if names.contains("CURRENT") {
            let store = try RawStore(directory, Entries(valueBytes: 1, count: 0))
            store.mergeTables()
            store.close()
        }
        for name in names where !TemporaryTree.names(in: directory + "/" + name).isEmpty {
            try mergeTables(below: directory + "/" + name)
        }
    }
}
