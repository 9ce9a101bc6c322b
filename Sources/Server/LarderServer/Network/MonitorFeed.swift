/// A connection that receives the lines of a ``MonitorFeed``.
protocol MonitorReader: AnyObject {
    /// The position in the feed up to which the connection has taken lines; nil if it gets no lines.
    var feedPosition: Int? { get set }
    /// Called when there are new lines.
    func noteLines()
}

/// The lines of MONITOR that connections of one event loop have not taken yet. They are stored once for all
/// connections; each connection has a position in them.
///
/// Confined to its event loop.
final class MonitorFeed {
    private struct Chunk {
        var start: Int
        var bytes: [UInt8]
        var end: Int { start + bytes.count }
    }

    /// A chunk of this size gets no more lines.
    private static let chunkBytes = 65_536

    private var chunks: [Chunk] = []
    /// The position after the last line, in bytes since the loop's start.
    private(set) var end = 0
    /// The connections that get the next lines.
    private(set) var group: MonitorGroup?
    private(set) var readers: [any MonitorReader] = []
    /// Whether lines were added since ``takeNews()``.
    private var hasNews = false

    /// The size of the stored lines.
    var byteCount: Int { chunks.first.map { end - $0.start } ?? 0 }

    /// Adds a line for a group of connections.
    /// - Parameter connection: finds a connection of the group by its ID; nil if it was closed.
    func append(_ line: [UInt8], _ group: MonitorGroup, _ connection: (Int64) -> (any MonitorReader)?) {
        if group !== self.group { change(to: group, connection) }
        guard !readers.isEmpty else { return }
        if chunks.isEmpty || chunks[chunks.count - 1].bytes.count >= Self.chunkBytes {
            chunks.append(Chunk(start: end, bytes: []))
            chunks[chunks.count - 1].bytes.reserveCapacity(Self.chunkBytes + 1024)
        }
        chunks[chunks.count - 1].bytes += line
        end += line.count
        hasNews = true
    }

    private func change(to group: MonitorGroup, _ connection: (Int64) -> (any MonitorReader)?) {
        self.group = group
        let previous = readers
        readers = group.members.compactMap(connection)
        for reader in previous where !readers.contains(where: { $0 === reader }) { reader.feedPosition = nil }
        for reader in readers where reader.feedPosition == nil { reader.feedPosition = end }
    }

    func remove(_ connection: any MonitorReader) {
        guard connection.feedPosition != nil else { return }
        readers.removeAll { $0 === connection }
        connection.feedPosition = nil
    }

    /// - Returns: whether lines were added since the last call.
    func takeNews() -> Bool {
        defer { hasNews = false }
        return hasNews
    }

    /// Calls `body` with the bytes from a position, at most to the end of a chunk.
    /// - Returns: the position after them.
    func read(from position: Int, _ body: (UnsafeRawBufferPointer) -> Void) -> Int {
        guard position < end, !chunks.isEmpty else { return end }
        var (low, high) = (0, chunks.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if chunks[middle].end > position { high = middle } else { low = middle + 1 }
        }
        let chunk = chunks[low]
        chunk.bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[(position - chunk.start)...])) }
        return chunk.end
    }

    /// Removes the lines that all connections have taken.
    func trim() {
        guard !chunks.isEmpty else { return }
        guard !readers.isEmpty else {
            chunks = []
            return
        }
        let needed = readers.reduce(end) { min($0, $1.feedPosition ?? end) }
        let count = chunks.prefix { $0.end <= needed }.count
        if count == chunks.count, count == 1, chunks[0].bytes.capacity <= 2 * Self.chunkBytes {
            // Reuse the memory for the next lines.
            chunks[0].start = end
            chunks[0].bytes.removeAll(keepingCapacity: true)
        } else {
            chunks.removeFirst(count)
        }
    }
}
