/// What larderweb tells who has started it.
enum ExitCode {
    static let done: Int32 = 0
    /// The system refuses something.
    static let failed: Int32 = 1
    static let usage: Int32 = 2
    /// Another process uses the socket.
    static let taken: Int32 = 3

    /// For the help and the manual page.
    static let all: [(code: Int32, meaning: String)] = [
        (done, "success"), (failed, "the system refuses something, such as the address"), (usage, "wrong usage"),
        (taken, "another process uses the socket"),
    ]
}
