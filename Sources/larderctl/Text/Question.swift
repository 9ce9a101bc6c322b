// Questions before what cannot be undone.

import LarderPlatform

/// A question to the user of a terminal.
enum Question {
    /// Whether somebody is there to answer.
    static var canBeAsked: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// Asks, and waits for a line. Everything but y and yes is a no, and so is the end of the input.
    static func isAnsweredWithYes(_ text: String) -> Bool {
        Output.standardError(text + " [y/N] ")
        return ["y", "yes"].contains(readLine()?.lowercased())
    }
}
