import LarderPlatform

#if canImport(Glibc)
    import Glibc

    /// A small file system in memory. Mounting one requires root: see ``isPossible``.
    public final class SmallDisk {
        public let path: String
        private let directory: TemporaryDirectory

        /// Whether ``init(bytes:)`` succeeds here.
        public static let isPossible: Bool = (try? SmallDisk(bytes: 100_000)) != nil

        public struct Refused: Error {}

        public init(bytes: Int) throws {
            directory = try TemporaryDirectory()
            path = directory.path + "/disk"
            try FileSystem.makeDirectory(path)
            guard mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)") == 0 else { throw Refused() }
        }

        deinit { umount2(path, Int32(MNT_DETACH)) }

        /// The path of the file that ``fill(leaving:)`` creates.
        public var filler: String { path + "/filler" }

        /// Fills the disk, leaving `bytes` free.
        public func fill(leaving bytes: Int) {
            let file = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            defer { close(file) }
            var part = Int.max
            while let free = FileSystem.room(directory: path), free > bytes, part > 0 {
                part = min(part, free - bytes)
                // Other processes may have used some of the space in the meantime.
                if posix_fallocate(file, lseek(file, 0, SEEK_END), off_t(part)) != 0 { part /= 2 }
            }
        }
    }
#else
    /// A placeholder for systems on which no small disk can be made.
    public final class SmallDisk {
        public let path = ""
        public static let isPossible = false

        public struct Refused: Error {}

        public init(bytes: Int) throws { throw Refused() }

        public var filler: String { path }

        public func fill(leaving bytes: Int) {}
    }
#endif
