import CommandCatalog
import LarderEngine
import RESP

/// A command that waits for EXEC, with a copy of its words.
///
/// Confined to its session's owner.
final class QueuedCommand {
    let row: CommandMetadata
    private let bytes: UnsafeMutableRawBufferPointer
    /// Where each word ends.
    private let ends: [Int]

    /// The memory of a command beyond the bytes of its words, roughly.
    private static let overheadBytes = 64

    /// - Parameter word: returns the bytes of a word, which are copied.
    init(_ row: CommandMetadata, count: Int, word: (Int) -> UnsafeRawBufferPointer) {
        self.row = row
        var ends: [Int] = []
        ends.reserveCapacity(count)
        var end = 0
        for index in 0..<count {
            end += word(index).count
            ends.append(end)
        }
        self.ends = ends
        bytes = .allocate(byteCount: max(1, end), alignment: 1)
        for index in 0..<count {
            let source = word(index)
            // The sums above make room up to `ends[index]`.
            if let start = source.baseAddress, let base = bytes.baseAddress {
                (base + (ends[index] - source.count)).copyMemory(from: start, byteCount: source.count)
            }
        }
    }

    deinit { bytes.deallocate() }

    /// Words, the name included.
    var count: Int { ends.count }

    /// Valid as long as the command is.
    subscript(index: Int) -> UnsafeRawBufferPointer {
        let start = index == 0 ? 0 : ends[index - 1]
        return UnsafeRawBufferPointer(rebasing: bytes[start..<ends[index]])
    }

    /// Its memory, for the limit on transactions.
    var byteCount: Int { Self.byteCount(words: count, bytes: bytes.count) }

    static func byteCount(words: Int, bytes: Int) -> Int { bytes + words * MemoryLayout<Int>.stride + overheadBytes }

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
