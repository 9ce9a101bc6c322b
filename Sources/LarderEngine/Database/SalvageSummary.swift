/// What became of a damaged database: what could not be read, and what may be lost.
package struct SalvageSummary: Sendable, CustomStringConvertible {
    /// When it was over, in milliseconds since 1970.
    package var time: Int64 = 0
    /// Entries that were read and go on.
    package var entries = 0
    /// Parts of files that could not be read, and their bytes as far as known.
    package var pieces = 0
    package var bytes = 0
    /// Ranges of keys that may have lost entries, as text for people. Those that nobody has written since are absent now.
    package var lost: [String] = []
    /// How many there are; ``lost`` has the first ``rangesMax``.
    package var lostCount = 0
    /// Whether it is known which of the files counted. Where it is not, what may be obsolete is left out, and is in ``lost``.
    package var isComplete = true
    /// What nobody can tell, for people; empty if there is nothing.
    package var doubts: [String] = []
    /// Where the damaged files are kept; nil where they could not be.
    package var place: String?
    /// What was found first.
    package var damage = ""

    package static let rangesMax = 16

    package var description: String {
        let what = "\(entries) entries go on; \(pieces) pieces of \(bytes) bytes could not be read"
        let keys =
            lostCount == 0
            ? doubts.isEmpty ? "no entry is lost" : "no range of keys is lost"
            : "entries may be lost under the keys " + lost.joined(separator: ", ")
                + (lostCount > lost.count ? " and \(lostCount - lost.count) more ranges" : "")
        let kept = place.map { "the damaged files are kept at \($0)" } ?? "the damaged files could not be kept"
        return ([what, keys] + doubts + [kept]).joined(separator: "; ")
    }
}
