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
                let space = String(repeating: " ", count: widths[column] - cell.count)
                if column > 0 { line += "  " }
                if rightAligned.contains(column) {
                    line += space + cell
                } else {
                    line += column == row.count - 1 ? cell : cell + space
                }
            }
            return line
        }
    }
}
