import LarderClient
import LarderPlatform

/// Runs commands that take long, and shows their progress on a terminal.
enum LongCall {
    /// Sends a command and waits for its reply. On a terminal, shows the progress that INFO reports.
    /// - Parameter field: the prefix of the command's progress fields in `INFO larder`.
    static func run(
        _ client: BlockingLarderClient, _ words: [String], field: String, _ context: Context
    ) throws -> RESPValue {
        guard isatty(STDERR_FILENO) == 1 else { return try client.command(words) }
        var options = context.options
        options.socketPath = client.socketPath
        let observer = try Context(options: options, output: context.output).connect()
        let progress = ProgressLine()
        defer { progress.end() }
        let task = Awaited(onThread: { try client.command(words) })
        while !task.waitForEnd(milliseconds: 200) {
            guard let info = try? observer.serverInfo(section: "larder") else { continue }
            let figures = InfoFigures(info)
            progress.show(
                done: Int(clamping: figures.number(field + "_done_bytes")),
                total: Int(clamping: figures.number(field + "_total_bytes")))
        }
        return try task.result.get()
    }
}
