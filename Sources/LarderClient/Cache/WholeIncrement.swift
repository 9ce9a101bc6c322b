// Counters of any integer type.

import LarderRESP

/// An addition to an integer. The daemon itself adds signed 64-bit numbers. The client computes sums of other types,
/// and stores a sum only if the entry has not changed since it was read. So a sum outside the type's range, which could
/// not be read again, is never stored.
struct WholeIncrement<Number: FixedWidthInteger & Sendable>: Sendable {
    let key: [UInt8]
    let step: Number

    /// The step as a number that the daemon can add; nil for a type that the daemon cannot add.
    var stepOfDaemon: Int64? { Number.min == Int64.min && Number.max == Int64.max ? Int64(step) : nil }

    /// Adds the step to the stored number.
    /// - Parameter previous: the stored bytes; nil if there is no fresh entry.
    /// - Returns: the sum, and the entry that stores it.
    func sum(_ previous: [UInt8]?) throws(LarderClientError) -> (number: Number, entry: NewEntry) {
        let kind = CounterText.kind(Number.self)
        guard let number = previous.map({ CounterText.number(Number.self, $0) }) ?? Number.zero else {
            throw failure(.decode, "the value is not \(kind)")
        }
        let (sum, overflows) = number.addingReportingOverflow(step)
        if overflows { throw failure(.invalidArgument, "the sum is not \(kind)") }
        return (sum, try NewEntry(bytes: Array(sum.description.utf8), key, .keep, [], .json))
    }

    private func failure(_ code: LarderClientError.Code, _ message: String) -> LarderClientError {
        LarderClientError(code, message, operation: "increment", key: printableKey(key))
    }
}
