import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform
import LarderTestSupport
import Synchronization

/// Samples the sizes of a directory's files on a separate thread, until ``stop()``.
final class DiskSampler: Sendable {
    /// The disk space of the files at one point in time.
    struct Sample: Sendable {
        var bytes = 0
        /// The bytes of tables that no manifest names, because LevelDB is still writing them or has compacted them into
        /// others.
        var unlistedBytes = 0
    }

    struct Result: Sendable {
        var samples = 0
        /// The sample with the most bytes.
        var most = Sample()
        var mostUnlisted = 0
    }

    private let isOver = Atomic<Bool>(false)
    private let result = Guarded(Result())
    private let thread = Guarded<WorkThread?>(nil)

    init(_ directory: String) {
        thread.with {
            $0 = WorkThread(name: "sampler") { [self] in
                while !isOver.load(ordering: .relaxed) {
                    guard let sample = Self.sample(directory) else { continue }
                    result.with { result in
                        result.samples += 1
                        result.mostUnlisted = max(result.mostUnlisted, sample.unlistedBytes)
                        if sample.bytes > result.most.bytes { result.most = sample }
                    }
                }
            }
        }
    }

    func stop() -> Result {
        isOver.store(true, ordering: .relaxed)
        thread.with { $0 }?.join()
        return result.with { $0 }
    }

    /// Measures all files once.
    /// - Returns: nil if files were created or removed during the measurement, so that the sum would be wrong.
    private static func sample(_ directory: String) -> Sample? {
        let before = files(directory)
        let after = files(directory)
        guard before.keys == after.keys else { return nil }
        var sample = Sample(bytes: after.values.reduce(0, +))
        for path in after.keys where path.hasSuffix("/CURRENT") {
            let store = FileSystem.parent(path)
            guard let manifest = (try? ManifestScan.scan(directory: store)) ?? nil else { continue }
            for (file, bytes) in after where FileSystem.parent(file) == store && file.hasSuffix(".ldb") {
                let number = file.dropFirst(store.count + 1).dropLast(4)
                if UInt64(number).map({ manifest.tables[$0] == nil }) ?? false { sample.unlistedBytes += bytes }
            }
        }
        return sample
    }

    private static func files(_ directory: String) -> [String: Int] {
        var files: [String: Int] = [:]
        _ = FileSystem.space(directory) { files[$0] = $1 }
        return files
    }
}
