import LarderClient
import LarderVocabulary

/// A command of the slow log: an element of the response to `/api/slow`.
struct SlowReport: Encodable {
    let time: Int64
    let seconds: Double
    /// The first words of the command in printable form.
    let words: [String]
    let client: String

    private static let countMax = "32"
    private static let wordsMax = 6

    static func newest(_ link: DaemonLink) throws(LarderClientError) -> [SlowReport] {
        SlowCommand.read(try link.command("SLOWLOG", "GET", countMax)).map { command in
            let words = command.words.prefix(wordsMax).map { printableKey($0) }
            return SlowReport(
                time: command.seconds, seconds: Double(command.microseconds) / 1_000_000,
                words: words + (command.words.count > wordsMax ? ["…"] : []), client: command.clientName)
        }
    }
}
