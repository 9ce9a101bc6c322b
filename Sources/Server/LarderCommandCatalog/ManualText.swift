/// Formats text with the macros of man(7), for the manual pages.
package enum ManualText {
    /// Escapes text within a line.
    package static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("~", with: "\\(ti")
            .replacing("`", with: "\\(ga").replacing("^", with: "\\(ha").replacing("…", with: "...")
    }

    /// Formats a line of text, with its line break. Escapes a leading dot or apostrophe, which would start a request
    /// (macro).
    package static func line(_ text: String) -> String {
        let text = escaped(text)
        return (text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text) + "\n"
    }

    /// Formats a list item: a term and its description.
    package static func item(_ head: String, _ lines: [String]) -> String {
        ".TP\n.B \(escaped(head))\n" + lines.map(line).joined()
    }

    /// Formats lines whose breaks and spaces are kept.
    package static func verbatim(_ lines: [Substring]) -> String {
        ".nf\n" + lines.map { line(String($0)) }.joined() + ".fi\n"
    }
}
