/// Text in the macros of man(7), for the manual pages.
package enum ManualText {
    /// Text within a line.
    package static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("~", with: "\\(ti")
            .replacing("`", with: "\\(ga").replacing("^", with: "\\(ha").replacing("…", with: "...")
    }

    /// A line of text, with its end. One that begins with a dot or an apostrophe would be a request.
    package static func line(_ text: String) -> String {
        let text = escaped(text)
        return (text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text) + "\n"
    }

    /// An item of a list, and what there is to say about it.
    package static func item(_ head: String, _ lines: [String]) -> String {
        ".TP\n.B \(escaped(head))\n" + lines.map(line).joined()
    }

    /// Lines that keep their breaks and blanks.
    package static func verbatim(_ lines: [Substring]) -> String {
        ".nf\n" + lines.map { line(String($0)) }.joined() + ".fi\n"
    }
}
