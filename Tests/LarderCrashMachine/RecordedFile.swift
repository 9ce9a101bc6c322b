import LarderPlatform
import LarderTestSupport

/// The contents of a recorded file: the data that is certainly on disk, and the later changes.
final class RecordedFile {
    private struct Change {
        enum Kind {
            case write(offset: Int, data: Range<Int>)
            case truncate(size: Int)
        }
        let kind: Kind
        /// The end of the record in the trace.
        let end: Int
        /// Whether an fsync failed after this change. The system then considers the data written, but it may not be on
        /// disk.
        var isDoubtful = false
    }

    /// A part of a doubtful write that is not on disk. It stays in the page cache until its page is written again.
    private struct Fragment {
        let offset: Int
        let data: Range<Int>
    }

    /// The page size of the recorded system.
    private static let pageBytes = 4096

    private let trace: UnsafeRawBufferPointer
    private var durable: [UInt8] = []
    private var lost: [Fragment] = []
    private var pending: [Change] = []

    init(_ trace: UnsafeRawBufferPointer) { self.trace = trace }

    var isSynced: Bool { pending.isEmpty && lost.isEmpty }

    // MARK: Changes

    func write(_ data: Range<Int>, at offset: Int, end: Int) {
        pending.append(Change(kind: .write(offset: offset, data: data), end: end))
    }

    func truncate(to size: Int, end: Int) { pending.append(Change(kind: .truncate(size: size), end: end)) }

    /// Handles the success of an fsync that began at a position of the trace.
    func sync(begin: Int) {
        let count = pending.firstIndex { $0.end > begin } ?? pending.count
        for index in 0..<count {
            switch pending[index].kind {
            case .truncate(let size):
                Self.resize(&durable, to: size)
                lost = lost.filter { $0.offset < size }.map {
                    Fragment(offset: $0.offset, data: $0.data.prefix(size - $0.offset))
                }
            case .write(let offset, let data) where pending[index].isDoubtful:
                keepOrLose(data, at: offset, unless: pending[(index + 1)..<count])
            case .write(let offset, let data):
                restore(pages(offset, data.count))
                put(data, at: offset, in: &durable)
            }
        }
        pending.removeFirst(count)
    }

    func failSync(begin: Int) {
        for index in pending.indices where pending[index].end <= begin { pending[index].isDoubtful = true }
    }

    /// Decides for each page of a doubtful write whether it is on disk. A page that is written again later is on disk.
    /// For other pages the decision is random, with the position as the seed.
    private func keepOrLose(_ data: Range<Int>, at offset: Int, unless later: ArraySlice<Change>) {
        if durable.count < offset + data.count { Self.resize(&durable, to: offset + data.count) }
        for page in pages(offset, data.count) {
            let (start, part) = Self.part(page, data, offset)
            let isWrittenAgain = later.contains { change in
                guard case .write(let offset, let data) = change.kind, !change.isDoubtful else { return false }
                return pages(offset, data.count).contains(page)
            }
            var coin = SeededGenerator(seed: UInt64(data.lowerBound) &+ UInt64(page))
            if isWrittenAgain || coin.oneIn(2) {
                put(part, at: start, in: &durable)
            } else {
                lost.append(Fragment(offset: start, data: part))
            }
        }
    }

    /// Puts lost fragments of these pages on disk. The system writes whole pages, so a new write to a page also writes
    /// the other data of that page.
    private func restore(_ pages: ClosedRange<Int>) {
        guard !lost.isEmpty else { return }
        for fragment in lost where pages.contains(fragment.offset / Self.pageBytes) {
            put(fragment.data, at: fragment.offset, in: &durable)
        }
        lost.removeAll { pages.contains($0.offset / Self.pageBytes) }
    }

    // MARK: Possible contents

    /// The contents in the page cache, which the next process reads after a daemon was killed.
    func content() -> [UInt8] {
        var bytes = durable
        for fragment in lost { put(fragment.data, at: fragment.offset, in: &bytes) }
        for change in pending { apply(change, to: &bytes) }
        return bytes
    }

    /// Returns possible contents of the disk.
    /// - Parameter metadata: truncations up to this position of the trace are kept.
    func contentAfterPowerCut(metadata: Int, using random: inout SeededGenerator) -> [UInt8] {
        guard !isSynced else { return durable }
        let isTruncation = { (change: Change) in if case .truncate = change.kind { true } else { false } }
        let least = pending.lastIndex { isTruncation($0) && $0.end <= metadata }.map { $0 + 1 } ?? 0
        // The number of pending changes whose effect on the file's length is on disk.
        let sized =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: least
            case 1: pending.count
            default: Int.random(in: least...pending.count, using: &random)
            }
        let isInOrder = random.oneIn(2)
        var bytes = durable
        for change in pending[..<sized] where !isInOrder { resize(&bytes, for: change) }
        if isInOrder {
            for change in pending[..<sized] { apply(change, to: &bytes) }
            // A part of the next write may be on disk.
            if sized < pending.count, case .write(let offset, let data) = pending[sized].kind, random.oneIn(2) {
                let count = Int.random(in: 0...data.count, using: &random)
                apply(Change(kind: .write(offset: offset, data: data.prefix(count)), end: 0), to: &bytes)
            }
        } else {
            applyPages(upTo: sized, to: &bytes, using: &random)
        }
        return bytes
    }

    /// Applies the pending writes page by page. Each page gets its writes up to a random change, independently of the
    /// other pages. The file keeps the length that it has after the first `sized` changes.
    private func applyPages(upTo sized: Int, to bytes: inout [UInt8], using random: inout SeededGenerator) {
        let size = bytes.count
        bytes = durable
        Self.resize(&bytes, to: max(size, durable.count))
        var limits: [Int: Int] = [:]
        for (index, change) in pending.enumerated() {
            switch change.kind {
            case .truncate(let size):
                if index < sized { for place in min(size, bytes.count)..<bytes.count { bytes[place] = 0 } }
            case .write(let offset, let data):
                for page in pages(offset, data.count) {
                    let limit = limits[page] ?? limit(using: &random)
                    limits[page] = limit
                    guard index < limit else { continue }
                    for fragment in lost where fragment.offset / Self.pageBytes == page {
                        overwrite(fragment.data, at: fragment.offset, in: &bytes)
                    }
                    let (start, part) = Self.part(page, data, offset)
                    overwrite(part, at: start, in: &bytes)
                }
            }
        }
        Self.resize(&bytes, to: size)
    }

    private func limit(using random: inout SeededGenerator) -> Int {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: 0
        case 1: Int.random(in: 0...pending.count, using: &random)
        default: pending.count
        }
    }

    // MARK: Bytes

    private static func resize(_ bytes: inout [UInt8], to size: Int) {
        if bytes.count > size {
            bytes.removeLast(bytes.count - size)
        } else {
            bytes += zeros(size - bytes.count)
        }
    }

    /// Returns `count` zero bytes. Uses memset, because an image has megabytes of zeros and `repeatElement` is slow in
    /// unoptimized builds.
    private static func zeros(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            if let start = buffer.baseAddress { memset(start, 0, count) }
            initialized = count
        }
    }

    private func resize(_ bytes: inout [UInt8], for change: Change) {
        switch change.kind {
        case .truncate(let size): Self.resize(&bytes, to: size)
        case .write(let offset, let data): Self.resize(&bytes, to: max(bytes.count, offset + data.count))
        }
    }

    private func apply(_ change: Change, to bytes: inout [UInt8]) {
        switch change.kind {
        case .truncate(let size): Self.resize(&bytes, to: size)
        case .write(let offset, let data): put(data, at: offset, in: &bytes)
        }
    }

    private func put(_ data: Range<Int>, at offset: Int, in bytes: inout [UInt8]) {
        if offset == bytes.count {
            bytes.append(contentsOf: trace[data])
            return
        }
        if bytes.count < offset + data.count { Self.resize(&bytes, to: offset + data.count) }
        overwrite(data, at: offset, in: &bytes)
    }

    /// Overwrites bytes without extending the array.
    private func overwrite(_ data: Range<Int>, at offset: Int, in bytes: inout [UInt8]) {
        let count = min(data.count, bytes.count - offset)
        guard count > 0 else { return }
        bytes.withUnsafeMutableBytes { buffer in
            UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<(offset + count)]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: trace[data.prefix(count)]))
        }
    }

    private func pages(_ offset: Int, _ count: Int) -> ClosedRange<Int> {
        (offset / Self.pageBytes)...(max(offset, offset + count - 1) / Self.pageBytes)
    }

    /// The part of a write that is in a page, and its offset in the file.
    private static func part(_ page: Int, _ data: Range<Int>, _ offset: Int) -> (start: Int, data: Range<Int>) {
        let start = max(offset, page * pageBytes)
        let end = min(offset + data.count, (page + 1) * pageBytes)
        let first = data.lowerBound + start - offset
        return (start, first..<(first + max(0, end - start)))
    }
}
