import CLarderFaultLibrary

/// A program's changes to the files below a directory, as recorded by the preloaded library (``FaultControl``).
package struct FileTrace {
    /// A recorded event. Files are identified by numbers (inodes, which ``create(file:name:)`` may reuse). Names are
    /// relative to the directory, whose own name is empty.
    package enum Event: Equatable, Sendable {
        /// A process started. `root` is the directory's number, or 0 if the directory does not exist yet.
        case attach(root: UInt64)
        case create(file: UInt64, name: String)
        /// `data` is a range of the trace's bytes.
        case write(file: UInt64, offset: Int, data: Range<Int>)
        case truncate(file: UInt64, size: Int)
        /// An fsync of a file or directory started. It covers all changes recorded before it.
        case sync(file: UInt64)
        /// The fsync succeeded; `begin` is the position of the record of its start.
        case synced(file: UInt64, begin: Int)
        /// The fsync failed.
        case unsynced(file: UInt64, begin: Int)
        case rename(from: String, to: String)
        case link(from: String, to: String)
        case unlink(name: String)
        case makeDirectory(file: UInt64, name: String)
        case removeDirectory(name: String)

        package var isSync: Bool { if case .synced = self { true } else { false } }
        package var createdName: String? { if case .create(_, let name) = self { name } else { nil } }
    }

    package struct Record: Sendable {
        /// The position of the record in the trace, and the position of its end. The trace includes the record once it
        /// is `end` bytes long.
        package let position: Int
        package let end: Int
        /// The wall clock as the program saw it, in milliseconds.
        package let wallMilliseconds: Int64
        package let event: Event

        package func dataIsFound(_ bytes: [UInt8], in trace: UnsafeRawBufferPointer) -> Bool {
            guard case .write(_, _, let data) = event, data.count >= bytes.count else { return false }
            return (data.lowerBound...(data.upperBound - bytes.count)).contains { start in
                trace[start..<(start + bytes.count)].elementsEqual(bytes)
            }
        }
    }

    package let bytes: UnsafeRawBufferPointer

    /// The caller must keep the bytes valid while this object and its records are used.
    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// Returns all records, beginning with the record at position `start`.
    package func records(from start: Int = 0) -> [Record] {
        var records: [Record] = []
        var position = start
        while position + MemoryLayout<lf_record>.size <= bytes.count {
            let record = record(at: position)
            records.append(record)
            position = record.end
        }
        return records
    }

    private func record(at position: Int) -> Record {
        let head = bytes.loadUnaligned(fromByteOffset: position, as: lf_record.self)
        let names = position + MemoryLayout<lf_record>.size
        let others = names + Int(head.name_bytes)
        let data = others + Int(head.other_bytes)
        let end = data + Int(head.data_bytes)
        let name = String(decoding: bytes[names..<others], as: UTF8.self)
        let other = String(decoding: bytes[others..<data], as: UTF8.self)
        let offset = Int(truncatingIfNeeded: head.offset)
        let event: Event =
            switch Int(head.kind) {
            case LF_TRACE_ATTACH: .attach(root: head.file)
            case LF_TRACE_CREATE: .create(file: head.file, name: name)
            case LF_TRACE_WRITE: .write(file: head.file, offset: offset, data: data..<end)
            case LF_TRACE_TRUNCATE: .truncate(file: head.file, size: offset)
            case LF_TRACE_SYNC: .sync(file: head.file)
            case LF_TRACE_SYNCED: .synced(file: head.file, begin: offset)
            case LF_TRACE_UNSYNCED: .unsynced(file: head.file, begin: offset)
            case LF_TRACE_RENAME: .rename(from: name, to: other)
            case LF_TRACE_LINK: .link(from: name, to: other)
            case LF_TRACE_UNLINK: .unlink(name: name)
            case LF_TRACE_MKDIR: .makeDirectory(file: head.file, name: name)
            default: .removeDirectory(name: name)
            }
        return Record(
            position: position, end: (end + 7) & ~7, wallMilliseconds: head.wall / 1_000_000, event: event)
    }
}
