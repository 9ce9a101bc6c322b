import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// A command with words of its own, beside the parser's: one that waits for EXEC, with a copy of them, or one that a
/// script calls, whose words are the script's.
///
/// Confined to its session's owner.
final class QueuedCommand {
    private(set) var row: CommandMetadata
    /// The copy of all words; nil if they are not its own.
    private let bytes: UnsafeMutableRawBufferPointer?
    private var words: [UnsafeRawBufferPointer]

    /// The memory of a command beyond the bytes of its words, roughly.
    private static let overheadBytes = 64

    /// - Parameter word: returns the bytes of a word, which are copied.
    init(_ row: CommandMetadata, count: Int, word: (Int) -> UnsafeRawBufferPointer) {
        self.row = row
        words = []
        words.reserveCapacity(count)
        var total = 0
        for index in 0..<count { total += word(index).count }
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, total), alignment: 1)
        self.bytes = bytes
        var end = 0
        for index in 0..<count {
            let source = word(index)
            // The sum above makes room for all of them.
            let place = UnsafeMutableRawBufferPointer(rebasing: bytes[end..<end + source.count])
            place.copyMemory(from: source)
            words.append(UnsafeRawBufferPointer(place))
            end += source.count
        }
    }

    /// A command without words, for ``borrow(_:count:word:)``.
    init(borrowing row: CommandMetadata) {
        self.row = row
        bytes = nil
        words = []
    }

    /// Takes the words of another call, which must stay valid while it is used.
    func borrow(_ row: CommandMetadata, count: Int, word: (Int) -> UnsafeRawBufferPointer) {
        self.row = row
        words.removeAll(keepingCapacity: true)
        for index in 0..<count { words.append(word(index)) }
    }

    deinit { bytes?.deallocate() }

    /// Words, the name included.
    var count: Int { words.count }

    /// Valid as long as the command is.
    subscript(index: Int) -> UnsafeRawBufferPointer { words[index] }

    /// Its memory, for the limit on transactions.
    var byteCount: Int { Self.byteCount(words: count, bytes: bytes?.count ?? 0) }

    static func byteCount(words: Int, bytes: Int) -> Int {
        bytes + words * MemoryLayout<UnsafeRawBufferPointer>.stride + overheadBytes
    }

    func text(_ index: Int) -> String { String(decoding: self[index], as: UTF8.self) }

    /// Whether it stores its keys unconditionally, and cannot fail.
    var overwritesBlindly: Bool {
        switch row.overwrites {
        case .never: false
        case .words(let number): count == number
        case .pairs: count % 2 == 1
        }
    }
}
