import LarderRESP

/// The form of an expiry time in a command: in seconds or milliseconds, and as an instant or as a time span.
struct ExpiryForm: Equatable {
    let isSeconds: Bool
    let isAbsolute: Bool

    static let seconds = ExpiryForm(isSeconds: true, isAbsolute: false)
    static let milliseconds = ExpiryForm(isSeconds: false, isAbsolute: false)
    static let unixSeconds = ExpiryForm(isSeconds: true, isAbsolute: true)
    static let unixMilliseconds = ExpiryForm(isSeconds: false, isAbsolute: true)

    /// Returns the deadline by the engine's clock, in milliseconds since 1970.
    /// - Parameter positive: whether zero and negative numbers are errors, as they are for SET.
    func deadline(_ value: Int64, _ call: some CommandWords, positive: Bool) throws(CommandError) -> Int64 {
        // Creating the error takes longer than computing the deadline, so create the error only when it is thrown.
        func invalid() -> CommandError { CommandError("ERR invalid expire time in '\(call.name)' command") }
        if positive, value <= 0 { throw invalid() }
        let (scaled, overflow) = isSeconds ? value.multipliedReportingOverflow(by: 1000) : (value, false)
        if overflow { throw invalid() }
        // An instant is a time of the wall clock. Convert it to the engine's clock, which may be ahead.
        let (sum, carry) = scaled.addingReportingOverflow(isAbsolute ? call.timeAhead : call.now)
        if carry, !isAbsolute { throw invalid() }
        return carry ? scaled : sum
    }
}

extension ExpiryForm {
    init?(_ word: ShortWord) {
        switch word {
        case .ex: self = .seconds
        case .px: self = .milliseconds
        case .exat: self = .unixSeconds
        case .pxat: self = .unixMilliseconds
        default: return nil
        }
    }
}
