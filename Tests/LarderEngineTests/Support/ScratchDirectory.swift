import TestSupport

@testable import LarderEngine

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A directory that goes with the last reference.
protocol ScratchDirectory: AnyObject {
    var path: String { get }
}

extension TemporaryDirectory: ScratchDirectory {}

/// A directory that somebody else removes.
final class OthersDirectory: ScratchDirectory {
    let path: String
    init(_ path: String) { self.path = path }
}

/// A directory in memory, so that an fsync costs nothing.
final class MemoryDirectory: ScratchDirectory {
    let path: String

    /// - Returns: nil where there is no file system in memory, or little room in it.
    init?() {
        var status = statvfs()
        guard statvfs("/dev/shm", &status) == 0, status.f_bavail * status.f_frsize > 256 << 20 else { return nil }
        var template = "/dev/shm/larder.XXXXXX".utf8CString
        let made = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
        guard let made else { return nil }
        path = made
    }

    deinit { try? FileSystem.removeTree(path) }
}
