import Threading

/// The databases that were damaged and moved aside, below `DAMAGED/` in the larder.
enum DamagedFiles {
    static let directoryName = "DAMAGED"

    /// Makes a directory for what is set aside under a name.
    static func place(for name: String, context: EngineContext) throws(LarderError) -> String {
        let parent = context.directory + "/" + directoryName
        let place = parent + "/\(context.nextEpoch(after: 0))-\(name)"
        do throws(FileError) {
            try FileSystem.makeDirectories(place)
            try FileSystem.syncDirectory(parent)
        } catch {
            throw LarderError(.io, error.description, operation: "set aside", underlying: error)
        }
        return place
    }

    /// Where a database goes that is set aside now.
    static func place(of name: String, context: EngineContext) throws(LarderError) -> String {
        let parent = context.directory + "/" + directoryName
        do throws(FileError) {
            try FileSystem.makeDirectory(parent)
        } catch {
            throw LarderError(.io, error.description, operation: "set aside", database: name, underlying: error)
        }
        return parent + "/\(context.nextEpoch(after: 0))-\(name)"
    }

    /// Moves a database's directory aside.
    static func move(_ directory: String, to place: String, name: String, context: EngineContext) throws(LarderError) {
        do throws(FileError) {
            try FileSystem.rename(directory, to: place)
        } catch {
            throw LarderError(.io, error.description, operation: "set aside", database: name, underlying: error)
        }
        do throws(FileError) {
            try FileSystem.syncDirectory(FileSystem.parent(place))
            try FileSystem.syncDirectory(context.directory)
        } catch {
            context.report(.error, "\(error); a failure of the machine now may bring damaged database '\(name)' back")
        }
    }

    /// Removes the oldest beyond the cap. Names begin with the time in milliseconds, so the oldest sort first.
    static func enforceCap(_ context: EngineContext) {
        let parent = context.directory + "/" + directoryName
        let names = (try? FileSystem.list(parent)) ?? []
        var sizes = names.map { ($0, FileSystem.size(parent + "/" + $0)) }
        var total = sizes.reduce(0) { $0 + $1.1 }
        while total > context.options.damagedBytesMax, let (oldest, size) = sizes.first {
            sizes.removeFirst()
            total -= size
            context.report(.warning, "removing \(parent)/\(oldest) (\(size) bytes): more damaged files than are kept")
            try? FileSystem.removeTree(parent + "/" + oldest)
        }
    }
}

/// Damage that was met while running. Does not name the database by a reference: a store may not keep it, and a weak one
/// would make every count of references to the database slow.
struct DamageReport {
    let store: EpochStore
    let error: LarderError
}

/// Damage that was met while running, waiting for the maintenance thread.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the list is read and written with the lock held.
final class DamageReports: @unchecked Sendable {
    private let lock = Lock()
    private var reports: [DamageReport] = []

    func add(_ store: EpochStore, _ error: LarderError) {
        lock.withLock { reports.append(DamageReport(store: store, error: error)) }
    }

    func take() -> [DamageReport] {
        lock.withLock {
            defer { reports = [] }
            return reports
        }
    }
}
