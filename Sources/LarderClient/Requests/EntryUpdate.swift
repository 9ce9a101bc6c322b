// Updates of entries by compare and swap, for the calls `update` and `increment` of both clients.

import LarderCommandCatalog
import LarderRESP

/// The key of an update and its attempts. Each attempt reads the entry, and performs the request of
/// ``NewEntry/replacing(_:with:_:for:)`` with the new value. If that fails, another client has changed the entry, and
/// the next attempt follows after a pause.
struct EntryUpdate {
    private let key: [UInt8]
    private var attempts: UpdateAttempts

    /// - Parameters:
    ///   - most: the maximum number of attempts; nil to try until the time limit has passed.
    ///   - timeoutMilliseconds: the client's time limit; 0 for none.
    /// - Throws: `invalidArgument` for fewer attempts than one.
    init(_ key: [UInt8], attempts most: Int? = nil, timeoutMilliseconds: Int) throws(LarderClientError) {
        try Self.check(attempts: most, "update")
        self.key = key
        attempts = UpdateAttempts(
            most: most, limitMilliseconds: timeoutMilliseconds == 0 ? nil : timeoutMilliseconds)
    }

    /// Registers the update of a call whose closure may make other updates.
    /// - Throws: `recursion` if the closure of an update of the key makes the call.
    mutating func begin(in client: AnyObject, _ database: String) throws(LarderClientError) -> RunningUpdate {
        do throws(RunningUpdate.Recursion) {
            let update = try RunningUpdate(of: Self.name(key, database), in: client)
            attempts.update = update
            return update
        } catch {
            throw LarderClientError(
                .recursion, error.message, operation: "update", database: database, key: printableKey(key))
        }
    }

    /// Returns the name of a key among those of all databases.
    static func name(_ key: [UInt8], _ database: String) -> [UInt8] { Array(database.utf8) + [0] + key }

    /// Returns the pause before the next attempt, in nanoseconds.
    /// - Throws: `conflict` or `recursion` if there must be no other attempt.
    mutating func pause(_ database: String) throws(LarderClientError) -> UInt64 {
        if let pause = attempts.rest() { return pause }
        throw LarderClientError(
            attempts.isRecursion ? .recursion : .conflict, attempts.conflict, operation: "update", database: database,
            key: printableKey(key))
    }

    static func check(attempts: Int?, _ operation: String) throws(LarderClientError) {
        guard let attempts, attempts < 1 else { return }
        throw LarderClientError(
            .invalidArgument, "attempts is \(attempts), and must be at least 1", operation: operation)
    }
}

extension Request {
    /// Records what the request has written. Matters if the closure of an update of a key makes the call.
    /// - Parameter reply: the server's, which is no error.
    func noteWrites(_ reply: RESPValue, in client: AnyObject, _ database: @autoclosure () -> String) {
        guard RunningUpdate.current != nil, let flags = CommandMetadata.row(of: words)?.flags, flags.contains(.write)
        else { return }
        // Other commands than these reply with the number of keys that they have removed, or change only lifetimes.
        if flags.contains(.creates) ? reply.isNull : reply.int ?? 0 == 0 { return }
        for key in changed { RunningUpdate.noteWrite(of: EntryUpdate.name(key, database()), in: client) }
    }
}

// The daemon itself adds signed 64-bit numbers. The client computes sums of other types, and stores a sum only if the
// entry has not changed since it was read. So a sum outside the type's range, which could not be read again, is never
// stored.
extension FixedWidthInteger {
    /// The number as a step that the daemon can add; nil for a type that the daemon cannot add.
    var stepOfDaemon: Int64? { Self.min == Int64.min && Self.max == Int64.max ? Int64(self) : nil }

    /// Adds the number to a stored one.
    /// - Parameter previous: the stored bytes; nil if there is no fresh entry.
    /// - Returns: the sum, and the entry that stores it.
    func added(to previous: [UInt8]?, _ key: [UInt8]) throws(LarderClientError) -> (sum: Self, entry: NewEntry) {
        func failure(_ code: LarderClientError.Code, _ message: String) -> LarderClientError {
            LarderClientError(code, message, operation: "increment", key: printableKey(key))
        }
        let kind = CounterText.kind(Self.self)
        guard let number = previous.map({ CounterText.number(Self.self, $0) }) ?? Self.zero else {
            throw failure(.decode, "the value is not \(kind)")
        }
        let (sum, overflows) = number.addingReportingOverflow(self)
        if overflows { throw failure(.invalidArgument, "the sum is not \(kind)") }
        return (sum, try NewEntry(bytes: Array(sum.description.utf8), key, .keep, [], .json))
    }
}
