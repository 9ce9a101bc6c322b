import LarderVocabulary

/// The stored form of integers: decimal digits, as in JSON and in the daemon's commands.
package enum CounterText {
    /// Parses an integer in the form that the daemon accepts: without spaces, `+` and leading zeros.
    /// - Returns: nil for other text, and for numbers outside the range of the type.
    package static func number<Number: FixedWidthInteger>(_ type: Number.Type, _ bytes: some Collection<UInt8>)
        -> Number?
    {
        guard bytes.count <= 40, let text = String(validating: bytes, as: UTF8.self), let number = Number(text),
            number.description == text
        else { return nil }
        return number
    }

    /// Returns the description of a valid number, for messages.
    package static func kind(_ type: any FixedWidthInteger.Type) -> String { "a whole number in the range of \(type)" }
}
