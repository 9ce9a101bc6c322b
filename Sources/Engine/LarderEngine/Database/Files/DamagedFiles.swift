import LarderLevelDB
import LarderPlatform

/// Damaged files kept as evidence, in `DAMAGED/` of the larder. Each set of files has a directory there, named by an
/// increasing number and the database's name.
enum DamagedFiles {
    static let directoryName = "DAMAGED"
    /// The prefix of directories that are not complete yet. If a crash leaves one, the next opening of the larder
    /// removes it.
    static let temporaryPrefix = ".making-"

    /// Makes a directory for the files of a database that is set aside, and returns its path.
    static func place(for name: String, context: LarderContext) throws(LarderError) -> String {
        let place = nextPlace(name, context)
        try LarderError.wrapping("set aside") { () throws(FileError) in
            try FileSystem.makeDirectories(place)
            try FileSystem.syncDirectory(FileSystem.parent(place))
        }
        return place
    }

    /// Returns the path to which the directory of a database will be moved. Creates only the parent directory.
    static func place(of name: String, context: LarderContext) throws(LarderError) -> String {
        let place = nextPlace(name, context)
        let parent = FileSystem.parent(place)
        try LarderError.wrapping("set aside", database: name) { () throws(FileError) in
            try FileSystem.makeDirectory(parent)
        }
        return place
    }

    /// Moves a database's directory aside.
    static func move(_ directory: String, to place: String, name: String, context: LarderContext) throws(LarderError) {
        try LarderError.wrapping("set aside", database: name) { () throws(FileError) in
            try FileSystem.rename(directory, to: place)
        }
        do throws(FileError) {
            try FileSystem.syncDirectory(FileSystem.parent(place))
            try FileSystem.syncDirectory(context.directory)
        } catch {
            context.report(
                .error, "\(error); after a machine failure now, the damaged database '\(name)' may reappear",
                database: name)
        }
    }

    /// Makes hard links of a damaged epoch's files (one LevelDB), and of its database's POINTER, in `DAMAGED`. So the
    /// files are kept unchanged. The links are permanent only after ``Evidence/makePermanent(_:)``.
    /// - Returns: evidence without linked files if hard links are not possible.
    static func keep(
        _ epoch: String, pointer: String, _ name: String, _ context: LarderContext
    ) throws(LarderError) -> Evidence {
        let place = nextPlace(name, context)
        let parent = FileSystem.parent(place)
        let last = { (path: String) in path.split(separator: "/").last.map(String.init) ?? path }
        let temporaryPlace = parent + "/" + temporaryPrefix + last(place)
        var evidence = Evidence(place: place, temporaryPlace: temporaryPlace, epochName: last(epoch), linked: nil)
        let linked = temporaryPlace + "/" + last(epoch)
        do {
            try FileSystem.makeDirectory(parent)
            try FileSystem.makeDirectory(temporaryPlace)
            // POINTER may be the missing file.
            do throws(FileError) { try FileSystem.hardLink(pointer, to: temporaryPlace + "/" + last(pointer)) } catch {
                guard error.number == ENOENT || error.isNoLink else { throw error }
            }
            try FileSystem.makeDirectory(linked)
            if FileSystem.exists(epoch), try !link(epoch, to: linked) { return evidence }
            try FileSystem.syncDirectory(linked)
            evidence.linked = linked
            return evidence
        } catch {
            evidence.discard(context)
            throw LarderError(
                .io, "cannot set aside the damaged files: \(error)", operation: "salvage", database: name,
                underlying: error)
        }
    }

    /// Links all files, while LevelDB may be merging tables. The result has at least the files that the manifest names.
    /// The manifest is copied instead of linked, because LevelDB appends to it.
    /// - Returns: false if links are not possible.
    private static func link(_ epoch: String, to linked: String) throws -> Bool {
        while true {
            let manifests = try manifests(epoch)
            for (name, bytes) in manifests { try FileSystem.writeFile(linked + "/" + name, bytes) }
            for name in try FileSystem.list(epoch) where name != "LOCK" && !name.hasPrefix("MANIFEST-") {
                do throws(FileError) {
                    try? FileSystem.removeFile(linked + "/" + name)
                    try FileSystem.hardLink(epoch + "/" + name, to: linked + "/" + name)
                } catch {
                    if error.isNoLink { return false }
                    // LevelDB has merged the table into others and removed it. The manifest records that.
                    guard error.number == ENOENT else { throw error }
                }
            }
            // LevelDB removes a file only after the manifest no longer names it. So if the manifests have not changed,
            // no file is missing.
            if try self.manifests(epoch) == manifests { return true }
        }
    }

    private static func manifests(_ epoch: String) throws -> [String: [UInt8]] {
        var result: [String: [UInt8]] = [:]
        for name in try FileSystem.list(epoch) where name.hasPrefix("MANIFEST-") {
            result[name] = try FileSystem.read(epoch + "/" + name, bytesMax: 1 << 30)
        }
        return result
    }

    /// Writes a description of the damage next to the files.
    static func describe(_ text: String, in place: String, _ context: LarderContext) {
        do throws(FileError) {
            try FileSystem.writeFile(place + "/REPORT", Array((text + "\n").utf8))
        } catch {
            context.report(.warning, "\(error)")
        }
    }

    /// Removes directories that a crash left incomplete.
    static func clear(_ context: LarderContext) {
        let parent = context.directory + "/" + directoryName
        for name in (try? FileSystem.list(parent)) ?? [] where name.hasPrefix(temporaryPrefix) {
            context.disposalQueue.remove(parent + "/" + name)
        }
    }

    /// Returns a new path, whose number is higher than all earlier ones, even if the clock was set back.
    private static func nextPlace(_ name: String, _ context: LarderContext) -> String {
        let parent = context.directory + "/" + directoryName
        let numbers = ((try? FileSystem.list(parent)) ?? []).compactMap(number)
        return parent + "/\(context.nextEpoch(after: numbers.max() ?? 0))-\(name)"
    }

    private static func number(_ name: String) -> UInt64? { name.split(separator: "-").first.flatMap { UInt64($0) } }

    /// Removes the oldest directories while all of them together exceed the cap. Keeps the newest directory, unless it
    /// takes more than half of the larder's disk limit. Ignores directories without a number, which are not Larder's.
    static func enforceCap(_ context: LarderContext) {
        let limit = context.disk.boundBytes ?? .max
        let most = min(context.options.damagedBytesMax, limit / 4)
        let parent = context.directory + "/" + directoryName
        let kept = ((try? FileSystem.list(parent)) ?? []).compactMap { name in number(name).map { ($0, name) } }
            .sorted { $0.0 < $1.0 }.map { (path: parent + "/" + $0.1, bytes: FileSystem.size(parent + "/" + $0.1)) }
        var total = kept.reduce(0) { $0 + $1.bytes }
        for (path, bytes) in kept.last.map({ $0.bytes > limit / 2 }) ?? false ? kept : kept.dropLast()
        where total > most {
            do throws(FileError) {
                try FileSystem.removeTree(path)
                total -= bytes
                context.report(.warning, "removed \(path) (\(bytes) bytes): the damaged files exceed their limit")
            } catch {
                context.report(.warning, "could not remove \(path), and damaged files exceed their limit: \(error)")
            }
        }
    }
}

/// The files of a damaged epoch, while they are moved to `DAMAGED`.
struct Evidence {
    /// The final place of the files.
    let place: String
    /// The place of the files before they are moved to ``place``.
    fileprivate let temporaryPlace: String
    fileprivate let epochName: String
    /// The directory with links to the epoch's original files; nil if no links could be made.
    fileprivate(set) var linked: String?

    /// Makes the evidence permanent, before the epoch is replaced.
    mutating func makePermanent(_ context: LarderContext) throws(LarderError) {
        guard linked != nil else { return }
        try LarderError.wrapping("salvage") { () throws(FileError) in
            try FileSystem.rename(temporaryPlace, to: place)
            try FileSystem.syncDirectory(FileSystem.parent(place))
            try FileSystem.syncDirectory(context.directory)
        }
        linked = place + "/" + epochName
    }

    /// Moves the epoch's own directory to ``place``, after the epoch was replaced. For file systems without hard links.
    /// - Returns: its new place.
    func take(_ epoch: String, _ context: LarderContext) throws(LarderError) -> String {
        try LarderError.wrapping("salvage") { () throws(FileError) in
            try FileSystem.rename(temporaryPlace, to: place)
            try FileSystem.removeTree(place + "/" + epochName)
            try FileSystem.rename(epoch, to: place + "/" + epochName)
            try FileSystem.syncDirectory(FileSystem.parent(place))
            try FileSystem.syncDirectory(context.directory)
        }
        return place
    }

    /// Removes the evidence, because the epoch was not replaced.
    func discard(_ context: LarderContext) {
        context.disposalQueue.remove(temporaryPlace)
        context.disposalQueue.remove(place)
    }
}

extension FileError {
    /// Whether the error means that a hard link is not possible here.
    fileprivate var isNoLink: Bool { [EPERM, EXDEV, EOPNOTSUPP, ENOSYS, EMLINK].contains(number) }
}
