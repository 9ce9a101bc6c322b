import LarderLevelDBFormat
import LarderPlatform

/// Options of a salvage: what the caller knows about the files, and how to treat uncertain data.
package struct SalvageOptions: Sendable {
    /// The number of bytes known to be synced, for each log by number (123 for `000123.log`).
    ///
    /// Invalid bytes within the synced length are damage, and so is a log that is shorter or missing. After the synced
    /// length, a log ends at the first invalid byte. This is not damage: the machine failed while the log was being
    /// written. In a log that is not listed, invalid bytes are damage, unless the file ends within its last record, or
    /// only zeros follow.
    package var syncedLogBytes: [UInt64: Int] = [:]

    /// Whether the keys of every batch ever written ascend strictly, not counting keys with ``ignoredFirstBytes``. The
    /// default is false.
    ///
    /// If true, an invalid part of a batch can only have contained keys between its readable neighbors, and only these
    /// keys are lost. Otherwise the part may have contained any key.
    package var batchesAreSorted = false

    /// The first bytes of keys to ignore: such keys are neither returned nor reported as lost. The default is none.
    package var ignoredFirstBytes: Set<UInt8> = []

    /// Whether bytes that cannot be read because of EIO (an error of the device) count as damaged. The default is
    /// false: the error is thrown, because it may be temporary.
    package var readErrorsAreDamage = false

    /// The maximum uncompressed length of a table's block in bytes. A block with a longer stated length is damage, and
    /// no memory is allocated for it. The default is 1 GiB (the longest entry that LevelDB accepts) plus 1 MiB.
    package var blockBytesMax = (1 << 30) + (1 << 20)

    /// The maximum number of bytes of logs in memory. If the logs are longer, `.tooLarge` is thrown. The default is 3
    /// GiB.
    package var logBytesMax = 3 << 30

    /// The content of the manifest as the caller has recorded it earlier, used if the manifest is lost or damaged. The
    /// result may lack later writes, so the caller must have them from another source. The default is nil.
    package var noted: ManifestScan?

    /// Whether to return no entries of tables if it is unknown which tables are current: obsolete tables have outdated
    /// entries. The default is false: all tables are used, and ``SalvageReport/isComplete`` is false.
    package var unknownIsLost = false

    package init() {}
}

/// The reason why files cannot be read now. Damage is never thrown: it is in the report. After an error, discard the
/// reader. Another reader may be created later.
package struct SalvageError: Error, Hashable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The operating system reported an error: no permission, no file descriptors, no memory, a device error.
        case system
        /// The logs exceed the memory limit in the options.
        case tooLarge
        /// The directory is not a LevelDB database with bytewise key order.
        case unsupported
    }

    package let code: Code
    /// The system's errno; 0 unless the code is `.system`.
    package let errno: Int32
    /// The path of the file or directory.
    package let path: String
    package let message: String

    init(_ code: Code, errno: Int32 = 0, path: String, message: String) {
        (self.code, self.errno, self.path, self.message) = (code, errno, path, message)
    }

    /// Creates the error for a failed system call.
    init(systemCall: String, path: String, errno number: Int32) {
        self.init(.system, errno: number, path: path, message: "\(systemCall): \(SystemErrorText.of(number))")
    }
}

extension SalvageError: CustomStringConvertible {
    package var description: String { "salvage of \(path): \(message)" }
}
