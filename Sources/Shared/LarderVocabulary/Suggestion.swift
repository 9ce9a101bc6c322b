// "Did you mean …?"

/// Finds the intended name of a mistyped word.
package enum Suggestion {
    /// The longest word to compare: the work grows with the square of the length.
    private static let lengthMax = 32

    /// For the end of an error's text: `; did you mean NAME?`, or nothing when no name is near.
    package static func text(for word: String, among names: [String]) -> String {
        nearest(to: word, among: names).map { "; did you mean \($0)?" } ?? ""
    }

    /// The nearest of `names`, ignoring case; nil when none is near.
    ///
    /// A typing error is at most a third of the letters, and at most three of them; one letter in words of up to five. Where
    /// it is more than one letter, or most of the word, the first letter is right: `nosuch` is not `touch`, and `x` is
    /// nothing at all. No name has a blank in it, so what has one is more than a name.
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

    /// What can be mistyped: small letters, and not the dashes before an option.
    private static func letters(_ word: String) -> [UInt8] {
        Array(word.lowercased().utf8.drop { $0 == UInt8(ascii: "-") })
    }

    /// The number of letters to insert, delete, replace or swap with the next to turn one word into the other.
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
