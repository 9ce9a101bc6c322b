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
    package static func nearest(to word: String, among names: [String]) -> String? {
        guard word.utf8.count <= lengthMax else { return nil }
        let typed = Array(word.lowercased().utf8)
        var best: (name: String, distance: Int)?
        for name in names {
            let distance = Self.distance(typed, Array(name.lowercased().utf8))
            if distance < best?.distance ?? Int.max { best = (name, distance) }
        }
        // Up to a third of wrong letters is a typing error; more make another word.
        guard let best, best.distance <= max(1, typed.count / 3) else { return nil }
        return best.name
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
