/// The result of salvaging a damaged database: unreadable parts, and possible losses.
package struct SalvageSummary: Sendable, CustomStringConvertible {
    /// When the salvage ended, in milliseconds since 1970.
    package var time: Int64 = 0
    /// The number of entries that were read and kept.
    package var entries = 0
    /// The number of unreadable parts of files, and their size in bytes as far as known.
    package var pieces = 0
    package var bytes = 0
    /// Ranges of keys that may have lost entries, as text for people. Lost keys are absent until they are written
    /// again.
    package var lost: [String] = []
    /// The number of ranges that may have lost entries; ``lost`` has the first ``rangesMax``.
    package var lostCount = 0
    /// Whether it is known which files were current. Otherwise files that may be obsolete are skipped and listed in
    /// ``lost``.
    package var isComplete = true
    /// Open questions about the result, as text for people; empty if there are none.
    package var doubts: [String] = []
    /// The place of the damaged files; nil if they could not be kept.
    package var place: String?
    /// The first damage that was found.
    package var damage = ""

    package static let rangesMax = 16

    package var description: String {
        let what =
            "\(counted(entries, "entry was", "entries were")) kept; \(counted(pieces, "piece")), "
            + "\(counted(bytes, "byte")) in total, could not be read"
        let keys =
            lostCount == 0
            ? doubts.isEmpty ? "no entry is lost" : "no range of keys is lost"
            : "entries may be lost under the keys " + lost.joined(separator: ", ")
                + (lostCount > lost.count ? " and " + counted(lostCount - lost.count, "more range") : "")
        let kept = place.map { "the damaged files are in \($0)" } ?? "the damaged files could not be kept"
        return ([what, keys] + doubts + [kept]).joined(separator: "; ")
    }
}
