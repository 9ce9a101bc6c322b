/// Formats manual pages with the macros of man(7).
package enum ManualPage {
    /// Returns a page.
    /// - Parameters:
    ///   - summary: the text after the name in the section NAME.
    ///   - sections: the titles and contents of the other sections, with macros.
    package static func page(
        _ name: String, _ number: Int, _ summary: String, _ sections: KeyValuePairs<String, String>
    ) -> String {
        let manuals = [1: "User Commands", 8: "System Manager's Manual"]
        return """
            .\\" Generated from tables in the sources by `make docs`.
            .TH \(escaped(name.uppercased())) \(number) "" "larder" "\(manuals[number] ?? "Miscellaneous Information Manual")"
            .SH NAME
            \(escaped(name)) \\- \(escaped(summary))

            """ + sections.map { ".SH \($0)\n" + ($1.hasSuffix("\n") ? $1 : $1 + "\n") }.joined()
    }

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
