import LevelDB
import Platform

/// What stands where a database's files would be. Somebody may have given a directory of their own as a larder: what is
/// not ours is not listed, not damaged, and never touched.
enum DatabaseDirectory {
    /// Nothing, or an empty directory.
    case absent
    /// A database, intact or damaged: there is a ``PointerFile`` or its spare, or a directory named as an epoch with LevelDB's files.
    case database
    /// Something else, as far as can be seen: all of it was seen.
    case foreign
    /// Nobody can say for now.
    case unreadable(FileError)

    init(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let number = errno
            self = number == ENOENT ? .absent : .unreadable(FileError(operation: "stat", path: path, number: number))
            return
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            self = .foreign
            return
        }
        let names: [String]
        do throws(FileError) {
            names = try FileSystem.list(path)
        } catch {
            self = .unreadable(error)
            return
        }
        // A purged database has no other files than these two: where the first is lost, the second says whose it is.
        if names.contains(PointerFile.name) || names.contains(PointerFile.name + Replacement.suffix) {
            self = .database
            return
        }
        var unseen: FileError?
        for name in names where UInt64(name) != nil {
            // A number alone makes no epoch: people keep directories named as years.
            do throws(LevelDBError) {
                if try LevelDB.Database.fileState(path: path + "/" + name) != .absentOrEmpty {
                    self = .database
                    return
                }
            } catch {
                // A file is none of ours, but that a directory cannot be read says nothing.
                if FileSystem.isDirectory(path + "/" + name) {
                    unseen = FileError(operation: "list", path: path + "/" + name, number: EIO)
                }
            }
        }
        if let unseen { self = .unreadable(unseen) } else { self = names.isEmpty ? .absent : .foreign }
    }
}
