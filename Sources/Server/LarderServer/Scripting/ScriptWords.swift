import CLarderLuaBridge
import LarderEngine
import LarderRESP

/// The words of a command that a script calls.
struct ScriptWords: CommandWords {
    let words: UnsafePointer<larder_script_word>
    let count: Int
    let now: Int64
    /// Without reference counting, which would cost more than most commands.
    let clock: Unmanaged<EngineTime>

    var timeAhead: Int64 { clock._withUnsafeGuaranteedRef { $0.offsetMilliseconds } }

    func bytes(_ index: Int) -> UnsafeRawBufferPointer {
        precondition(index >= 0 && index < count, "no such word")
        return UnsafeRawBufferPointer(words[index])
    }
}

extension larder_script_word {
    init(_ word: UnsafeRawBufferPointer) {
        self.init(bytes: word.baseAddress?.assumingMemoryBound(to: UInt8.self), count: word.count)
    }
}

extension UnsafeRawBufferPointer {
    init(_ word: larder_script_word) { self.init(start: word.bytes, count: word.count) }
}

extension ReplyBuffer {
    /// Writes the result of a command of ``QuickCommands``.
    mutating func reply(_ answer: larder_script_answer) {
        switch answer.kind {
        case LARDER_ANSWER_STRING: bulk(UnsafeRawBufferPointer(start: answer.bytes, count: answer.count))
        case LARDER_ANSWER_INTEGER: integer(answer.integer)
        case LARDER_ANSWER_OK: raw("+OK\r\n")
        default: null()
        }
    }
}
