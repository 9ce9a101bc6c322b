extension Unicode.Scalar {
    /// Whether a terminal would interpret the character instead of printing it. True for control characters, and for
    /// characters that change the direction of text (Unicode Standard Annex 9, section 2).
    package var steersTerminal: Bool {
        switch value {
        case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
