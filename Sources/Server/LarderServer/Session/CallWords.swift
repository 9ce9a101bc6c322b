import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The words of a call, without access to its session. A function that gets only these words, such as a planner, can
/// have no side effects.
///
/// Counts no references, because all event loops would change the same counters. Valid while the command runs: the
/// caller keeps the words, the session keeps the server, and rows are never freed.
struct CallWords: CommandWords {
    /// The place where the words are stored.
    enum Source {
        case request(RequestArguments)
        /// A command in a transaction, or a recorded one of a script.
        case queued(Unmanaged<QueuedCommand>)
        /// A command that a script has called.
        case script(UnsafeBufferPointer<larder_script_word>)
    }

    let source: Source
    /// The command's row in the table of commands; nil for an unknown command.
    unowned(unsafe) var row: CommandMetadata?
    unowned(unsafe) let server: ServerState
    let now: Int64

    var count: Int {
        switch source {
        case .request(let words): words.count
        case .queued(let command): command._withUnsafeGuaranteedRef { $0.count }
        case .script(let words): words.count
        }
    }

    func bytes(_ index: Int) -> UnsafeRawBufferPointer {
        switch source {
        case .request(let words): words[index]
        case .queued(let command): command._withUnsafeGuaranteedRef { $0[index] }
        case .script(let words): UnsafeRawBufferPointer(words[index])
        }
    }

    var name: String { row?.name ?? "" }
    var timeAhead: Int64 { server.engine.clockOffsetMilliseconds }
    /// The limit for a value that a command builds, in bytes.
    var valueBytesMax: Int { server.limits.valueBytesMax }
}
