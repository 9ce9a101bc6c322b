import CommandCatalog
import LarderClient
import Platform

/// What may stand for a word of one of the daemon's commands. Asks a daemon for databases and keys, on a connection of its
/// own; without one there are none.
struct CommandCompletion {
    typealias Word = (word: String, note: String)

    /// The most keys that are offered; of more nobody knows what they have in common.
    static let keysMax = 100
    /// How long the daemon is asked: somebody waits at a prompt.
    private static let milliseconds: Int64 = 500

    private var options: Options

    /// - Parameter options: say which daemon and which database.
    init(_ options: Options) {
        self.options = options
        self.options.timeoutMilliseconds = Int(Self.milliseconds)
    }

    /// The words that may stand behind a command and some of its words.
    /// - Parameter current: what was typed of the word. Keys begin with it; others may not.
    func arguments(of command: CommandMetadata, _ behind: [String], current: String) -> [Word] {
        if behind.isEmpty, !command.subcommands.isEmpty {
            return command.subcommands.map { ($0.ownName.uppercased(), $0.summary) }
        }
        let place = behind.count + 1
        switch command.database {
        case .selected: if place == 1 { return databases }
        case .target(let name, _): if place == name { return databases }
        case .targetOption: if behind.last?.uppercased() == "DB" { return databases }
        case .both: if place <= 2 { return databases }
        case .all, .none: break
        }
        return command.keys.mayContain(place) ? keys(beginningWith: current) : []
    }

    var databases: [Word] {
        connected { try $0.databases().map { ($0.name, "policy \($0.policy)") } }
    }

    /// Keys that can be typed.
    func keys(beginningWith start: String) -> [Word] {
        let pattern = start.reduce(into: "") { pattern, letter in
            if "*?[]\\".contains(letter) { pattern.append("\\") }
            pattern.append(letter)
        }
        let end = MonotonicClock.milliseconds() + Self.milliseconds
        return connected { client in
            var found: [Word] = []
            try client.forEachKey(matching: Array("\(pattern)*".utf8)) { key in
                if let text = String(validating: key, as: UTF8.self), !text.isEmpty,
                    !text.unicodeScalars.contains(where: \.steersTerminal)
                {
                    found.append((text, ""))
                }
                return found.count < Self.keysMax && MonotonicClock.milliseconds() < end
            }
            return found
        }
    }

    private func connected(_ body: (BlockingLarderClient) throws -> [Word]) -> [Word] {
        (try? body(Context(options: options, output: Output()).connect())) ?? []
    }
}
