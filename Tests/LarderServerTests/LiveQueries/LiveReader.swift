import LarderEngine
import LarderPlatform
import LarderQueries
import LarderTestSupport

@testable import LarderQuerying

/// A reader of a live query: applies the events to its rows, and checks that they fit.
///
/// Thread-safe.
final class LiveReader: Sendable {
    struct Row: Equatable {
        let key: String
        let text: String?
    }

    struct State: Sendable {
        var rows: [LiveRow] = []
        /// The keys of removed rows with the reasons.
        var outs: [String] = []
        var sets = 0
        var resets = 0
        var ended: String?
        /// Whether the reader refuses events.
        var isSlow = false
        var refused = 0
        /// Events that did not fit.
        var problems: [String] = []
    }

    let words: [String]
    /// Events wait here while it is closed, and with them the thread of the live queries.
    let gate = Gate()
    private let state = Locked(State())

    init(_ words: [String]) { self.words = words }

    var now: State { state.withLock { $0 } }
    var keys: [String] { now.rows.map { String(decoding: $0.key, as: UTF8.self) } }
    var outs: [String] { now.outs }
    var rows: [Row] { now.rows.map(Row.init) }

    func change(_ body: @Sendable (inout State) -> Void) { state.withLock { body(&$0) } }

    /// Begins the query.
    /// - Parameter starts: false if the test starts it later.
    func begin(_ queries: LiveQueries, in database: Database, starts: Bool = true) throws -> LiveQueryHandle {
        let begun = try queries.begin(try query(), in: database) { events in self.take(events) }
        state.withLock { $0.rows = begun.rows }
        if starts { begun.handle.start() }
        return begun.handle
    }

    func query() throws -> Query { try Query(words.map { Array($0.utf8) }) }

    /// What the query returns now, with the order of a live query.
    func fresh(_ database: Database) throws -> [Row] {
        var query = try query()
        if query.order.parts.isEmpty { query.order = .byKey }
        query.scans = true
        var run = QueryRun(query, in: database, nil, QueryLimits())
        return try run.result().rows.map { Row(LiveRow(key: $0.key, text: $0.values.first ?? nil)) }
    }

    func take(_ events: [LiveEvent]) -> Bool {
        gate.pass()
        return state.withLock { state in
            if state.isSlow {
                state.refused += 1
                return false
            }
            for event in events { state.take(event) }
            return true
        }
    }
}

extension LiveReader.Row {
    init(_ row: LiveRow) {
        self.init(
            key: String(decoding: row.key, as: UTF8.self), text: row.text.map { String(decoding: $0, as: UTF8.self) })
    }
}

extension LiveReader.State {
    mutating func take(_ event: LiveEvent) {
        switch event {
        case .reset(let rows):
            self.rows = rows
            resets += 1
        case .out(let key, let reason):
            outs.append("\(String(decoding: key, as: UTF8.self)) \(reason.rawValue)")
            if let index = rows.firstIndex(where: { $0.key == key }) {
                rows.remove(at: index)
            } else {
                problems.append("out of a row that is not there: \(outs.last ?? "")")
            }
        case .set(let row, let index):
            sets += 1
            rows.removeAll { $0.key == row.key }
            if index > rows.count { problems.append("set at \(index) of \(rows.count)") }
            rows.insert(row, at: min(index, rows.count))
        case .ended(let failure): ended = failure.map { "\($0)" } ?? ""
        }
    }
}
