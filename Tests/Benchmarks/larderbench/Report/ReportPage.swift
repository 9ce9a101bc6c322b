/// The docs page that contains the report of a run between two marker lines.
enum ReportPage {
    private static let begin = "<!-- run: begin -->\n"
    private static let end = "<!-- run: end -->"

    /// Writes a report into an existing page.
    static func write(_ text: String, into path: String) throws(BenchError) {
        guard let page = TextFile.read(path) else { throw .system("cannot read \(path)") }
        try TextFile.write(try replacing(in: page, with: text), to: path)
    }

    /// Returns the page with its previous report replaced.
    /// - Throws: an error if the page has no marker lines.
    static func replacing(in page: String, with text: String) throws(BenchError) -> String {
        let parts = page.split(separator: begin, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw BenchError("the page has no line '\(begin.dropLast())'") }
        let rest = parts[1].split(separator: end, maxSplits: 1, omittingEmptySubsequences: false)
        guard rest.count == 2 else { throw BenchError("the page has no line '\(end)'") }
        return parts[0] + begin + "```\n" + text + "```\n" + end + rest[1]
    }
}
