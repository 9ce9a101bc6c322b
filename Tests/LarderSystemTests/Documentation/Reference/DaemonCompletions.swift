import LarderCommandCatalog
import LarderServer

/// Generates shell completions for larderd's command line from the table of options.
enum DaemonCompletions {
    static let shells = OptionCompletions(
        program: "larderd",
        DaemonOption.all.map { option in
            let usage = option.usage
            return OptionCompletions.Option(
                name: String(usage.prefix { $0 != " " && $0 != "[" && $0 != "=" }),
                value: usage.firstIndex(of: " ").map { String(usage[usage.index(after: $0)...]) }, help: option.help)
        })
}
