import CLarderLuaBridge
import LarderRESP

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
