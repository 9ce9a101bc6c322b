// Confirmations before irreversible operations.

import LarderPlatform

/// A question to the user of a terminal.
enum Question {
    /// Whether there is a terminal for a reply.
    static var canBeAsked: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// Asks, and waits for a line. Any reply except y and yes means no, and so does the end of the input.
    static func isAnsweredWithYes(_ text: String) -> Bool {
        Output.standardError(text + " [y/N] ")
        return ["y", "yes"].contains(readLine()?.lowercased())
    }
}
