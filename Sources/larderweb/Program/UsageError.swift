/// The command line is wrong: the mistake, and the right form.
struct UsageError: Error {
    let message: String

    init(_ message: String) { self.message = message }
}
