import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// A command that was queued for EXEC, or that a script has called while it was recorded. Owns a copy of its words.
///
/// Used only by the owner of its session.
final class QueuedCommand {
    let row: CommandMetadata
    /// The copy of all words.
    private let bytes: UnsafeMutableRawBufferPointer
    private var words: [UnsafeRawBufferPointer]

    /// The approximate memory in bytes that a command needs in addition to its words.
    private static let overheadBytes = 64

    /// Creates a command that owns a copy of its words; nil if the command would use more than `bytesMax` bytes.
    /// - Parameter word: returns the bytes of one of the words.
    init?(_ row: CommandMetadata, count: Int, bytesMax: Int, word: (Int) -> UnsafeRawBufferPointer) {
        var total = 0
        for index in 0..<count { total += word(index).count }
        guard Self.byteCount(words: count, bytes: total) <= bytesMax else { return nil }
        self.row = row
        words = []
        words.reserveCapacity(count)
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, total), alignment: 1)
        self.bytes = bytes
        var end = 0
        for index in 0..<count {
            let source = word(index)
            // This is within the buffer, which was allocated for the sum of all lengths.
            let place = UnsafeMutableRawBufferPointer(rebasing: bytes[end..<end + source.count])
            place.copyMemory(from: source)
            words.append(UnsafeRawBufferPointer(place))
            end += source.count
        }
    }

    deinit { bytes.deallocate() }

    /// The number of words, including the command's name.
    var count: Int { words.count }

    /// The bytes of a word. They are valid as long as this object exists.
    subscript(index: Int) -> UnsafeRawBufferPointer { words[index] }

    /// The memory that the command uses, in bytes. The sum for a transaction is limited.
    var byteCount: Int { Self.byteCount(words: count, bytes: bytes.count) }

    private static func byteCount(words: Int, bytes: Int) -> Int {
        bytes + words * MemoryLayout<UnsafeRawBufferPointer>.stride + overheadBytes
    }

    func text(_ index: Int) -> String { String(decoding: self[index], as: UTF8.self) }

    /// Whether the command overwrites all its keys without reading them, and cannot fail.
    var overwritesBlindly: Bool {
        switch row.overwrites {
        case .never: false
        case .words(let number): count == number
        case .pairs: count % 2 == 1
        }
    }
}
