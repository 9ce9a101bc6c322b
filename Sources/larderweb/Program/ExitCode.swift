/// The exit codes of larderweb.
enum ExitCode {
    static let done: Int32 = 0
    /// A system call failed.
    static let failed: Int32 = 1
    static let usage: Int32 = 2
    /// Another process uses the socket.
    static let taken: Int32 = 3

    /// All exit codes, for the help and the manual page.
    static let all: [(code: Int32, meaning: String)] = [
        (done, "success"), (failed, "system error, such as an address in use"), (usage, "wrong usage"),
        (taken, "another process uses the socket"),
    ]
}
