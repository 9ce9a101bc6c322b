/// An error in the command line. Its message describes the correct form.
struct UsageError: Error {
    let message: String

    init(_ message: String) { self.message = message }
}
