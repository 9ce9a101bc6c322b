/// Formats text with the macros of man(7), for the manual pages.
package enum ManualText {
    /// Escapes the characters of a text that are special within a line.
    package static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("~", with: "\\(ti")
            .replacing("`", with: "\\(ga").replacing("^", with: "\\(ha").replacing("…", with: "...")
    }

    /// Formats one line of text, and ends it with a line break. Escapes a dot or an apostrophe at the beginning of the
    /// line, where it would begin a request or a macro.
    package static func line(_ text: String) -> String {
        let text = escaped(text)
        return (text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text) + "\n"
    }

    /// Formats a list item: a term and its description.
    package static func item(_ head: String, _ lines: [String]) -> String {
        ".TP\n.B \(escaped(head))\n" + lines.map(line).joined()
    }

    /// Formats several lines so that their line breaks and spaces are kept.
    package static func verbatim(_ lines: [Substring]) -> String {
        ".nf\n" + lines.map { line(String($0)) }.joined() + ".fi\n"
    }
}
