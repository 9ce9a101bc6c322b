import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The fast path of commands that change one entry, such as counters, locks, deadlines and removals.
extension Session {
    /// The most words that a command on this path may have.
    private static let quickWordsMax = 6

    /// Tries to run the current command if it is one of ``QuickCommands``.
    /// - Parameter word: the command's name.
    /// - Returns: false if nothing was done, for example because the command needs the disk.
    func runQuickly(_ word: ShortWord, _ arguments: RequestArguments, _ now: Int64) -> Bool {
        guard arguments.count >= 2, arguments.count <= Self.quickWordsMax, word != .get,
            let row = QuickCommands.row(word), seesCurrent, !server.isCongested
        else { return false }
        let quick = QuickCommands(entries: .take())
        defer { quick.entries.giveBack() }
        guard quick.add(arguments[1]) else { return false }
        quick.entries.origin.client = id
        let replies = replyMemory
        let isDone = withUnsafeTemporaryAllocation(of: larder_script_word.self, capacity: Self.quickWordsMax) { words in
            for index in 0..<arguments.count {
                words.initializeElement(at: index, to: larder_script_word(arguments[index]))
            }
            let words = UnsafeBufferPointer(rebasing: words[..<arguments.count])
            return replyFromMemory { database, ticket in
                database.withBatch(quick.entries, now: now, ticket: &ticket) { _ in
                    var answer = larder_script_answer()
                    guard quick.call(words, &answer) != nil else { return false }
                    replies.pointee.reply(answer)
                    return true
                }
            }
        }
        guard isDone else { return false }
        accounting.noteFast(row)
        noteWork(bytes: arguments.count > 2 ? arguments[2].count : 0)
        return true
    }
}
