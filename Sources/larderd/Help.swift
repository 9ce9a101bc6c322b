import LarderEngine
import LarderServer

/// The text of `larderd --help`.
enum Help {
    static var text: String {
        """
        larderd \(Version.text): \(DaemonHelp.summary).

        usage: \(DaemonHelp.synopsis.joined(separator: "\n       "))

        \(DaemonOption.helpText)

        \(DaemonHelp.values.joined(separator: "\n"))

        \(DaemonHelp.signals.joined(separator: "\n"))

        exit codes:
        \(DaemonHelp.exitCodes.map { "  \($0.code)  \($0.meaning)" }.joined(separator: "\n"))

        """
    }
}
