import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The fast path of commands that change one entry: counters, locks, deadlines, removals.
extension Session {
    /// The most words of such a command.
    private static let quickWordsMax = 6

    /// Runs the current command if it is one of ``QuickCommands`` and does not need the disk.
    /// - Parameter word: its name.
    /// - Returns: false if the command had no effect.
    func runQuickly(_ word: ShortWord, _ arguments: RequestArguments, _ now: Int64) -> Bool {
        guard arguments.count >= 2, arguments.count <= Self.quickWordsMax, QuickCommands.has(word), seesCurrent,
            !server.isCongested, !server.notifier.needsPrevious
        else { return false }
        let quick = QuickCommands(entries: .take())
        defer { quick.entries.giveBack() }
        guard quick.add(arguments[1]) else { return false }
        let start = replyQueue.position
        let replies = replyMemory
        var ticket = CommitTicket.none
        var row: CommandMetadata?
        let isDone = withUnsafeTemporaryAllocation(of: larder_script_word.self, capacity: Self.quickWordsMax) { words in
            for index in 0..<arguments.count {
                words.initializeElement(at: index, to: larder_script_word(arguments[index]))
            }
            let words = UnsafeBufferPointer(rebasing: words[..<arguments.count])
            return fastDatabase._withUnsafeGuaranteedRef { database in
                database.withBatch(quick.entries, now: now, ticket: &ticket) { _ in
                    var answer = larder_script_answer()
                    row = quick.call(words, &answer)
                    guard row != nil else { return false }
                    replies.pointee.reply(answer)
                    return true
                }
            }
        }
        guard isDone, let row else { return false }
        hold(from: start, ticket)
        accounting.noteQuick(row.number)
        noteWork(bytes: arguments.count > 2 ? arguments[2].count : 0)
        return true
    }
}
