import LarderTestSupport

/// A recorded file system at a point of its trace, and the states of the disk that an accident there may leave.
///
/// - *The death of the process* keeps all changes.
/// - *A power failure with ordered metadata*, as in ext4, keeps changes of names and lengths in order, at least up to
///   the start of the last fsync of any file. Of the writes to a file since its own last fsync, any pages may be
///   missing. Missing pages by which the file has grown are read as zeros.
/// - *A power failure by POSIX alone* keeps the data that a file had at its last fsync, and an arbitrary set of the
///   pages that were written later. It keeps the entries that a directory had at its last fsync, and an arbitrary set
///   of later changes.
package struct RecordedDisk {
    package enum Accident: String, CaseIterable, Sendable {
        case kill
        case orderedPowerCut = "ordered"
        case strictPowerCut = "strict"
    }

    private let trace: FileTrace
    private let records: [FileTrace.Record]
    /// The number of records that were applied.
    package private(set) var done = 0

    private var nodesMade = 0
    /// The current node of each inode number. The recorded system may reuse inode numbers.
    private var nodes: [UInt64: NodeNumber] = [:]
    private var files: [NodeNumber: RecordedFile] = [:]
    private var names = NameTree()
    /// For power failures with ordered metadata: the names at the start of the last fsync, the later changes, and the
    /// position of that fsync.
    private var orderedNames = NameTree()
    private var orderedChanges: [NameChange] = []
    private var orderedEnd = 0
    /// For power failures by POSIX alone: each directory at its last fsync, and the later changes.
    private var strictNames = NameTree()
    private var strictChanges: [NameChange] = []

    /// - Parameter records: all records of `trace`.
    package init(_ trace: FileTrace, _ records: [FileTrace.Record]) {
        self.trace = trace
        self.records = records
    }

    // MARK: Advancing

    /// Applies records until `count` of them have been applied.
    package mutating func advance(to count: Int) { while done < count { step() } }

    private mutating func step() {
        let record = records[done]
        done += 1
        switch record.event {
        case .attach(let root): if root != 0 { nodes[root] = NameTree.root }
        case .create(let inode, let name):
            let node = makeNode(inode)
            files[node] = RecordedFile(trace.bytes)
            change(record, added: name, node)
        case .makeDirectory(let inode, let name):
            if name.isEmpty {
                nodes[inode] = NameTree.root
            } else {
                change(record, added: name, makeNode(inode))
            }
        case .write(let inode, let offset, let data): file(inode)?.write(data, at: offset, end: record.end)
        case .truncate(let inode, let size): file(inode)?.truncate(to: size, end: record.end)
        case .sync: break
        case .synced(let inode, let begin): sync(inode, begin)
        case .unsynced(let inode, let begin): file(inode)?.failSync(begin: begin)
        case .rename(let from, let to): rename(record, from, to)
        case .link(let from, let to): if let node = names.node(from) { change(record, added: to, node) }
        case .unlink(let name), .removeDirectory(let name):
            if names.node(name) != nil { apply(NameChange(end: record.end, removed: names.place(name))) }
        }
    }

    private func file(_ inode: UInt64) -> RecordedFile? { nodes[inode].flatMap { files[$0] } }

    private mutating func makeNode(_ inode: UInt64) -> NodeNumber {
        nodesMade += 1
        nodes[inode] = nodesMade
        return nodesMade
    }

    private mutating func change(_ record: FileTrace.Record, added name: String, _ node: NodeNumber) {
        guard let place = names.place(name) else { return }
        apply(NameChange(end: record.end, added: (place, node)))
    }

    private mutating func rename(_ record: FileTrace.Record, _ from: String, _ to: String) {
        // Files whose creation is not recorded, such as LevelDB's LOG, have no node.
        guard let node = names.node(from), let place = names.place(from), let target = names.place(to) else { return }
        apply(NameChange(end: record.end, removed: place, added: (target, node)))
    }

    private mutating func apply(_ change: NameChange) {
        names.apply(change)
        orderedChanges.append(change)
        strictChanges.append(change)
    }

    private mutating func sync(_ inode: UInt64, _ begin: Int) {
        let isEarlier = { (change: NameChange) in change.end <= begin }
        for change in orderedChanges.prefix(while: isEarlier) { orderedNames.apply(change) }
        orderedChanges.removeFirst(orderedChanges.prefix(while: isEarlier).count)
        orderedEnd = max(orderedEnd, begin)
        guard let node = nodes[inode] else { return }
        if let file = files[node] {
            file.sync(begin: begin)
            return
        }
        // A rename between two directories is on disk once either directory was fsynced.
        var left: [NameChange] = []
        for change in strictChanges {
            guard isEarlier(change), change.touches(node) else {
                left.append(change)
                continue
            }
            strictNames.apply(change)
            // The rename has removed the old name on disk, so pending changes of that name must not be applied later.
            if let removed = change.removed, removed.directory != node { left.removeAll { $0.concerns(removed) } }
        }
        strictChanges = left
    }

    // MARK: Possible states

    /// Returns one of the possible states of the disk after an accident at this point.
    package func image(after accident: Accident, using random: inout SeededGenerator) -> DiskImage {
        switch accident {
        case .kill: return image(names, torn: tornWrite(using: &random)) { $0.content() }
        case .orderedPowerCut:
            var tree = orderedNames
            let count =
                random.oneIn(3) ? orderedChanges.count : Int.random(in: 0...orderedChanges.count, using: &random)
            for change in orderedChanges.prefix(count) { tree.apply(change) }
            let metadata = count == 0 ? orderedEnd : max(orderedEnd, orderedChanges[count - 1].end)
            return image(tree, torn: nil) { $0.contentAfterPowerCut(metadata: metadata, using: &random) }
        case .strictPowerCut:
            var tree = strictNames
            let chances = Int.random(in: 0..<4, using: &random)
            for change in strictChanges where Int.random(in: 0..<4, using: &random) <= chances { tree.apply(change) }
            return image(tree, torn: nil) { $0.contentAfterPowerCut(metadata: 0, using: &random) }
        }
    }

    /// Returns the beginning of the next write, because SIGKILL may interrupt a write; or nil, for no part of it.
    private func tornWrite(using random: inout SeededGenerator) -> (file: RecordedFile, offset: Int, data: Range<Int>)?
    {
        guard done < records.count, case .write(let inode, let offset, let data) = records[done].event,
            let file = file(inode), random.oneIn(3)
        else { return nil }
        return (file, offset, data.prefix(Int.random(in: 0...data.count, using: &random)))
    }

    private func image(
        _ tree: NameTree, torn: (file: RecordedFile, offset: Int, data: Range<Int>)?,
        _ content: (RecordedFile) -> [UInt8]
    ) -> DiskImage {
        var image = DiskImage()
        for (path, node) in tree.reachable(isDirectory: { files[$0] == nil }) {
            guard let file = files[node] else {
                image.directories.append(path)
                continue
            }
            var bytes = content(file)
            if let torn, torn.file === file, torn.offset <= bytes.count {
                bytes.replaceSubrange(
                    torn.offset..<min(bytes.count, torn.offset + torn.data.count), with: trace.bytes[torn.data])
            }
            image.files.append((path, bytes))
        }
        return image
    }
}

/// A directory with its contents.
package struct DiskImage {
    /// Each directory precedes those inside it.
    package var directories: [String] = []
    package var files: [(path: String, bytes: [UInt8])] = []

    package subscript(path: String) -> [UInt8]? { files.first { $0.path == path }?.bytes }
}
