import LarderLevelDB
import LarderPlatform

/// The content of a database's directory. Users may open a directory of their own as a larder: files that are not
/// Larder's are not listed, do not count as damage, and are never touched.
enum DatabaseDirectory {
    /// Nothing, or an empty directory.
    case absent
    /// A database, intact or damaged: a ``PointerFile`` or the spare file for replacing it, or a directory that has an
    /// epoch's name and LevelDB's files.
    case database
    /// Not a database. Everything in the directory could be read.
    case foreign
    /// The content is unknown, because it could not be read.
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
        // A purged database has only these two files. If the first is lost, the second identifies it.
        if names.contains(PointerFile.name) || names.contains(PointerFile.name + Replacement.suffix) {
            self = .database
            return
        }
        var unseen: FileError?
        for name in names where UInt64(name) != nil {
            // A number alone does not make an epoch: people name directories by year.
            do throws(LevelDBError) {
                if try LarderLevelDB.Database.fileState(path: path + "/" + name) != .absentOrEmpty {
                    self = .database
                    return
                }
            } catch {
                // A plain file is not Larder's. An unreadable directory may be Larder's.
                if FileSystem.isDirectory(path + "/" + name) {
                    unseen = FileError(operation: "list", path: path + "/" + name, number: EIO)
                }
            }
        }
        if let unseen { self = .unreadable(unseen) } else { self = names.isEmpty ? .absent : .foreign }
    }
}
