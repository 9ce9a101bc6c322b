import LarderPlatform

/// Prints progress messages to standard error, so that standard output contains only the report.
enum Progress {
    static func note(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}
