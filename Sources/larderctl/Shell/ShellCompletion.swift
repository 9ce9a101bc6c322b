import LarderClient
import LarderCommandCatalog
import LarderRESP

/// Completes words in the interactive shell.
struct ShellCompletion {
    let options: Options
    /// The commands of the shell itself, such as `help`.
    let localWords: [String]

    func complete(_ text: String, width: Int) -> LineEditor.Completion {
        let line = TypedLine(text)
        guard let current = line.current.flatMap({ String(validating: $0, as: UTF8.self) }) else { return .nothing }
        let offer = offer(line, current)
        let candidates = offer.words.map(\.word)
        let note = Self.note(offer.skippedKeys)
        guard !candidates.isEmpty else {
            // If there is no completion, show the syntax of the command.
            guard line.words.count > 0, let row = CommandMetadata.row(of: line.words) else { return .nothing }
            return .show([CommandHelp.call(row)] + note)
        }
        let isCut = candidates.count >= CommandCompletion.keysMax && !line.words.isEmpty
        let common = isCut ? current : candidates.dropFirst().reduce(candidates[0]) { $0.commonStart($1) }
        if candidates.count == 1 || common.count > current.count {
            let typed = TypedLine.typed(common, isWhole: candidates.count == 1)
            return .replace(characters: line.currentLength, with: typed)
        }
        return .show(Self.columns(candidates.sorted(), width: width) + (isCut ? ["…"] : []) + note)
    }

    /// Returns a note about keys that are not offered; empty if there are none.
    private static func note(_ skippedKeys: Int) -> [String] {
        guard skippedKeys > 0 else { return [] }
        return [
            "(not offered: \(counted(skippedKeys, "key")) with control characters or not UTF-8; "
                + "type them as \"\\xHH\")"
        ]
    }

    private func offer(_ line: TypedLine, _ current: String) -> CommandCompletion.Offer {
        let isSmall = current.contains(where: \.isLowercase)
        func inCase(_ words: [String], and others: [String] = []) -> CommandCompletion.Offer {
            let start = isSmall ? current.lowercased() : current.uppercased()
            let words = words.map { isSmall ? $0.lowercased() : $0.uppercased() }.filter { $0.hasPrefix(start) }
            return CommandCompletion.Offer(words: (words + others).map { ($0, "") })
        }
        guard let first = line.words.first else {
            let local = localWords.filter { $0.hasPrefix(current.lowercased()) }
            return inCase(CommandMetadata.all.map(\.name), and: local)
        }
        let behind = line.words.dropFirst().map { String(decoding: $0, as: UTF8.self) }
        if localWords.contains(String(decoding: first, as: UTF8.self).lowercased()) {
            // Complete the words after `help`.
            guard let name = behind.first else { return inCase(CommandMetadata.all.map(\.name)) }
            let command = behind.count == 1 ? CommandMetadata.named(name) : nil
            return inCase(command?.subcommands.map { String($0.ownName) } ?? [])
        }
        guard let command = CommandMetadata.named(first), let row = CommandMetadata.row(of: line.words) else {
            return CommandCompletion.Offer()
        }
        if behind.isEmpty, !command.subcommands.isEmpty {
            return inCase(command.subcommands.map { String($0.ownName) })
        }
        var offer = CommandCompletion(options).arguments(of: row, behind, current: current)
        offer.words = offer.words.filter { $0.word.hasPrefix(current) }
        // If nothing else matches, offer the keywords in the command's syntax that start with the typed text.
        if offer.words.isEmpty, !current.isEmpty { offer.words = inCase(Self.keywords(row.syntax)).words }
        return offer
    }

    /// Returns the words of a syntax that are written in capital letters, such as EX.
    static func keywords(_ syntax: String) -> [String] {
        let words = syntax.split { !$0.isLetter && !$0.isNumber && $0 != "-" }.map(String.init)
        return Array(Set(words.filter { $0.contains(where: \.isUppercase) && !$0.contains(where: \.isLowercase) }))
    }

    private static func columns(_ words: [String], width: Int) -> [String] {
        let texts = words.map { TerminalText.escaped($0) }
        let column = (texts.map(\.count).max() ?? 0) + 2
        let count = max(1, width / column)
        return stride(from: 0, to: texts.count, by: count).map { start in
            texts[start..<min(start + count, texts.count)].map { $0.padded(column) }.joined()
        }
    }
}

extension String {
    /// Returns the common prefix of two texts.
    func commonStart(_ other: String) -> String {
        String(zip(self, other).prefix { $0 == $1 }.map(\.0))
    }
}

/// The line that the user has typed, up to the cursor: the complete words and the current word.
struct TypedLine {
    /// The complete words, without quotes.
    private(set) var words: [[UInt8]] = []
    /// The typed part of the current word, without quotes; empty after a space. Nil if it cannot be parsed, for example
    /// because text follows a closing quote.
    private(set) var current: [UInt8]? = []
    /// The number of typed characters of the current word, including quotes.
    private(set) var currentLength = 0

    init(_ text: String) {
        let bytes = Array(text.utf8)
        var start: Int?
        var quote: UInt8?
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if let open = quote {
                if byte == UInt8(ascii: "\\") { index += 1 } else if byte == open { quote = nil }
            } else if byte == 0x20 || byte == 0x09 {
                if let begin = start { words += InlineWords.words(of: bytes[begin..<index]) ?? [[]] }
                start = nil
            } else {
                if start == nil { start = index }
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") { quote = byte }
            }
            index += 1
        }
        guard let start else { return }
        let typed = bytes[start...]
        current = InlineWords.words(of: Array(typed) + (quote.map { [$0] } ?? []))?.first
        currentLength = String(decoding: typed, as: UTF8.self).unicodeScalars.count
    }

    /// Returns a word as it must be typed: in quotes if necessary.
    /// - Parameter isWhole: whether a space follows the word. If not, the closing quote is omitted.
    static func typed(_ word: String, isWhole: Bool) -> String {
        let needsQuotes = word.isEmpty || word.unicodeScalars.contains { " \t\"'".unicodeScalars.contains($0) }
        guard needsQuotes else { return word + (isWhole ? " " : "") }
        let quoted = TypedReply.quoted(Array(word.utf8))
        return isWhole ? quoted + " " : String(quoted.dropLast())
    }
}
