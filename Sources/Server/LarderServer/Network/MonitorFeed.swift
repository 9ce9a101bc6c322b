/// A connection whose client has sent MONITOR. It takes lines from a ``MonitorFeed``.
protocol MonitorReader: AnyObject {
    /// The position in the feed up to which the connection has taken lines; nil if it is not a reader of the feed.
    var feedPosition: Int? { get set }
    /// Called when the feed has new lines.
    func noteLines()
}

/// The lines of MONITOR that connections of one event loop have not taken yet. The lines are stored once for all
/// connections, and each connection has its own position in them.
///
/// All calls must be on the thread of the event loop.
final class MonitorFeed {
    private struct Chunk {
        var start: Int
        var bytes: [UInt8]
        var end: Int { start + bytes.count }
    }

    /// A chunk of at least this many bytes gets no more lines.
    private static let chunkBytes = 65_536

    private var chunks: [Chunk] = []
    /// The position after the last line, in bytes. The first line of the loop has position 0.
    private(set) var end = 0
    /// The group of connections for which the last line was added.
    private(set) var group: MonitorGroup?
    private(set) var readers: [any MonitorReader] = []
    /// Whether lines were added since the last call of ``takeNews()``.
    private var hasNews = false

    /// The size of the stored lines in bytes.
    var byteCount: Int { chunks.first.map { end - $0.start } ?? 0 }

    /// Adds a line for a group of connections. Connections that are new in the group begin with this line.
    /// - Parameter connection: returns the connection with an ID; nil if it was closed.
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

    /// Calls `body` with the bytes from a position to the end of the chunk that contains it.
    /// - Returns: the position after these bytes.
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
