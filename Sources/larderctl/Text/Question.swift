// Asks the user to confirm irreversible operations.

import LarderPlatform

/// Questions to the user at a terminal.
enum Question {
    /// Whether standard input and standard error are terminals, so that a user can answer.
    static var canBeAsked: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// Asks a question and waits for a line. Returns true only for the answers y and yes, ignoring case.
    static func isAnsweredWithYes(_ text: String) -> Bool {
        Output.standardError(text + " [y/N] ")
        return ["y", "yes"].contains(readLine()?.lowercased())
    }
}
