// Counters of any width.

import LarderRESP

/// An addition to an integer. The daemon itself adds signed 64-bit numbers. Sums of other types are computed by the
/// client, and stored only if the entry has not changed since it was read. Therefore a sum outside the type's range,
/// which could not be read again, is never stored.
struct WholeIncrement<Number: FixedWidthInteger & Sendable>: Sendable {
    let key: [UInt8]
    let step: Number

    /// The step as a number that the daemon can add; nil if it cannot.
    var stepOfDaemon: Int64? { Number.min == Int64.min && Number.max == Int64.max ? Int64(step) : nil }

    /// - Parameter previous: the stored bytes; nil if there is no fresh entry.
    /// - Returns: the sum, and its bytes.
    func sum(_ previous: [UInt8]?) throws(LarderClientError) -> (number: Number, bytes: [UInt8]) {
        let kind = CounterText.kind(Number.self)
        guard let number = previous.map({ CounterText.number(Number.self, $0) }) ?? Number.zero else {
            throw failure(.decode, "the value is not \(kind)")
        }
        let (sum, overflows) = number.addingReportingOverflow(step)
        if overflows { throw failure(.invalidArgument, "the sum is not \(kind)") }
        return (sum, Array(sum.description.utf8))
    }

    private func failure(_ code: LarderClientError.Code, _ message: String) -> LarderClientError {
        LarderClientError(code, message, operation: "increment", key: printableKey(key))
    }
}
