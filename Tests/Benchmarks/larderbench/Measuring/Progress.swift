import LarderPlatform

/// Progress messages. They go to standard error, so that standard output has only the report.
enum Progress {
    static func note(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}
