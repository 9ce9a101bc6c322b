import LarderClient
import LarderCommandCatalog
import LarderPlatform
import LarderVocabulary

/// Completes the arguments of the daemon's commands. Reads databases and keys from the daemon on a separate connection.
/// If the daemon is not available, no databases and keys are offered.
struct CommandCompletion {
    typealias Word = (word: String, note: String)

    /// The maximum number of keys that are offered. If more match, no common prefix of the keys is inserted.
    static let keysMax = 100
    /// The time limit for the daemon's replies, in milliseconds. It is short, because the user is waiting.
    private static let milliseconds: Int64 = 500

    private var options: Options

    /// - Parameter options: the options that select the daemon and the database.
    init(_ options: Options) {
        self.options = options
        self.options.timeoutMilliseconds = Int(Self.milliseconds)
    }

    /// The possible completions at one position.
    struct Offer {
        var words: [Word] = []
        /// The number of matching keys that are not offered, because they contain control characters or are not UTF-8.
        var skippedKeys = 0
    }

    /// Returns the completions after a command and some of its arguments.
    /// - Parameter current: the typed part of the word. Returned keys start with it; other completions need not.
    func arguments(of command: CommandMetadata, _ behind: [String], current: String) -> Offer {
        if behind.isEmpty, !command.subcommands.isEmpty {
            return Offer(words: command.subcommands.map { ($0.ownName.uppercased(), $0.summary) })
        }
        let row =
            behind.first.flatMap { word in command.subcommands.first { $0.ownName == word.lowercased() } } ?? command
        let place = behind.count + 1
        if row.name == "config|get" || row.name == "config|set" && place % 2 == 0 { return Offer(words: settings) }
        switch row.database {
        case .selected: if place == 1 { return Offer(words: databases) }
        case .target(let name, _): if place == name { return Offer(words: databases) }
        case .targetOption: if behind.last?.uppercased() == "DB" { return Offer(words: databases) }
        case .both: if place <= 2 { return Offer(words: databases) }
        case .all, .none: break
        }
        return row.keys.mayContain(place) ? keys(beginningWith: current) : Offer()
    }

    var databases: [Word] {
        connected { try $0.databases().map { ($0.name, "policy \($0.policy)") } } ?? []
    }

    /// The names of the settings of CONFIG, with the values as notes.
    private var settings: [Word] {
        connected { client in
            (try client.command("CONFIG", "GET", "*").pairs ?? []).map {
                ($0.key.string ?? "", printableKey($0.value.bytes ?? []))
            }
        } ?? []
    }

    /// Returns the keys that start with a text and can be typed.
    func keys(beginningWith start: String) -> Offer {
        let end = MonotonicClock.milliseconds() + Self.milliseconds
        return connected { client in
            var found = Offer()
            try client.forEachKey(matching: GlobPattern.prefix(start.utf8)) { key in
                if let text = String(validating: key, as: UTF8.self), !text.isEmpty,
                    !text.unicodeScalars.contains(where: \.steersTerminal)
                {
                    found.words.append((text, ""))
                } else {
                    found.skippedKeys += 1
                }
                return found.words.count < Self.keysMax && MonotonicClock.milliseconds() < end
            }
            return found
        } ?? Offer()
    }

    private func connected<Result>(_ body: (BlockingLarderClient) throws -> Result) -> Result? {
        try? body(options.connect())
    }
}
