// Suggestions for mistyped words: "did you mean …?"

/// Finds the name that a user probably meant by a mistyped word.
package enum Suggestion {
    /// The maximum length of a word, because the time to compare grows with the square of the length.
    private static let lengthMax = 32

    /// Returns a suffix for an error message: `; did you mean NAME?`, or an empty text if no name is similar.
    package static func text(for word: String, among names: [String]) -> String {
        nearest(to: word, among: names).map { "; did you mean \($0)?" } ?? ""
    }

    /// Returns the most similar of `names`, ignoring case; nil if none is similar enough.
    ///
    /// In a word of two to five letters, one letter may be wrong. In a longer word, a third of the letters may be
    /// wrong, but at most three. The first letter must be right if more than one letter is wrong, or if the word has
    /// two letters: `nosuch` does not match `touch`. Words of one letter and words with a space match nothing.
    package static func nearest(to word: String, among names: [String]) -> String? {
        let typed = letters(word)
        guard typed.count > 1, typed.count <= lengthMax, !typed.contains(UInt8(ascii: " ")) else { return nil }
        var best: (name: String, distance: Int)?
        for name in names {
            let other = letters(name)
            let distance = Self.distance(typed, other)
            let limit = typed.first == other.first ? max(1, min(3, typed.count / 3)) : typed.count < 3 ? 0 : 1
            if distance <= limit, distance < best?.distance ?? Int.max { best = (name, distance) }
        }
        return best?.name
    }

    /// Returns the letters to compare: in lower case, without the leading dashes of an option.
    private static func letters(_ word: String) -> [UInt8] {
        Array(word.lowercased().utf8.drop { $0 == UInt8(ascii: "-") })
    }

    /// Returns the edit distance: the number of insertions, deletions, replacements and swaps of neighbors.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, letter) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var cost = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
