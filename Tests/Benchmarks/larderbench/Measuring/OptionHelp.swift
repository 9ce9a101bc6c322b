/// The layout of options in a help text.
enum OptionHelp {
    /// One option with its summary, wrapped.
    static func line(_ call: String, _ summary: String) -> String {
        let column = 26
        var lines = ["  " + call + String(repeating: " ", count: column - 2 - call.count)]
        var length = column
        for word in summary.split(separator: " ") {
            if length > column, length + 1 + word.count > 118 {
                lines.append(String(repeating: " ", count: column))
                length = column
            }
            lines[lines.count - 1] += (length > column ? " " : "") + word
            length += (length > column ? 1 : 0) + word.count
        }
        return lines.joined(separator: "\n")
    }
}
