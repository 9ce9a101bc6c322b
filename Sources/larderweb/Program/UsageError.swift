/// An error in the command line, with the correct form.
struct UsageError: Error {
    let message: String

    init(_ message: String) { self.message = message }
}
