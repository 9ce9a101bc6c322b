import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// A command whose words are not in the parser: a command queued for EXEC, with a copy of its words, or a command
/// called by a script, with the script's words.
///
/// Confined to its session's owner.
final class QueuedCommand {
    private(set) var row: CommandMetadata
    /// The copy of all words; nil if they are borrowed.
    private let bytes: UnsafeMutableRawBufferPointer?
    private var words: [UnsafeRawBufferPointer]

    /// The approximate memory of a command in addition to the bytes of its words.
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
            // The buffer has the size of all words, computed above.
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

    /// Borrows the words of another call, which must stay valid while this object is used.
    func borrow(_ row: CommandMetadata, count: Int, word: (Int) -> UnsafeRawBufferPointer) {
        self.row = row
        words.removeAll(keepingCapacity: true)
        for index in 0..<count { words.append(word(index)) }
    }

    deinit { bytes?.deallocate() }

    /// The number of words, including the name.
    var count: Int { words.count }

    /// Valid as long as the command exists.
    subscript(index: Int) -> UnsafeRawBufferPointer { words[index] }

    /// The memory use, for the limit on transactions.
    var byteCount: Int { Self.byteCount(words: count, bytes: bytes?.count ?? 0) }

    static func byteCount(words: Int, bytes: Int) -> Int {
        bytes + words * MemoryLayout<UnsafeRawBufferPointer>.stride + overheadBytes
    }

    func text(_ index: Int) -> String { String(decoding: self[index], as: UTF8.self) }

    /// Whether it overwrites its keys unconditionally, and cannot fail.
    var overwritesBlindly: Bool {
        switch row.overwrites {
        case .never: false
        case .words(let number): count == number
        case .pairs: count % 2 == 1
        }
    }
}
