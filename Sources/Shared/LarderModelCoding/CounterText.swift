import LarderVocabulary

/// Whole numbers as they are stored: their decimal digits, like in JSON and in the commands of the daemon.
package enum CounterText {
    /// Parses a number in the form that the daemon accepts: without spaces, `+` and leading zeros.
    /// - Returns: nil for anything else, and for numbers beyond the range of the type.
    package static func number<Number: FixedWidthInteger>(_ type: Number.Type, _ bytes: some Collection<UInt8>)
        -> Number?
    {
        guard bytes.count <= 40, let text = String(validating: bytes, as: UTF8.self), let number = Number(text),
            number.description == text
        else { return nil }
        return number
    }

    /// A description of such a number, for messages.
    package static func kind(_ type: any FixedWidthInteger.Type) -> String { "a whole number in the range of \(type)" }
}
