/// Formats tables.
enum Table {
    /// Returns the rows as lines with aligned columns.
    /// - Parameter rightAligned: the indices of the columns to align on the right, such as numbers.
    static func lines(_ rows: [[String]], rightAligned: Set<Int> = []) -> [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.compactMap { column < $0.count ? $0[column].count : nil }.max() ?? 0
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                if column > 0 { line += "  " }
                let isRight = rightAligned.contains(column)
                line += !isRight && column == row.count - 1 ? cell : cell.padded(widths[column], isRight: isRight)
            }
            return line
        }
    }
}

extension String {
    /// Returns the text with spaces after it (before it if `isRight` is true) up to a width. Longer text is unchanged.
    func padded(_ width: Int, isRight: Bool = false) -> String {
        let space = String(repeating: " ", count: max(0, width - count))
        return isRight ? space + self : self + space
    }
}
