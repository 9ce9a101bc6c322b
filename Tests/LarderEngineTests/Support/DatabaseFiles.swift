import LarderPlatform
import LarderTestSupport

@testable import LarderEngine

extension Files {
    /// Makes CURRENT name a manifest that never existed, so that the valid files are unknown.
    static func misleadCurrent(_ epoch: String) throws {
        try write(epoch + "/CURRENT", Array("MANIFEST-009999\n".utf8))
    }
}

extension TestLarder {
    /// Returns the directory of a database.
    func directory(of name: String = "books") -> String { path + "/" + name }

    /// Returns the directory of the current epoch (the database's LevelDB), which POINTER names.
    func epochDirectory(of name: String = "books") throws -> String {
        let pointer = try PointerFile(parsing: try Files.read(directory(of: name) + "/POINTER"))
        return directory(of: name) + "/\(pointer.epoch)"
    }

    /// Returns the names of the directories of all epochs.
    func epochs(of name: String = "books") throws -> [String] {
        try FileSystem.list(directory(of: name)).filter { UInt64($0) != nil }
    }

    var setAside: [String] { (try? FileSystem.list(path + "/DAMAGED")) ?? [] }
}

extension Checkpointing {
    /// Runs a checkpoint if one is due. Only tests call this method and `rewrite()`.
    @discardableResult
    func checkpointIfDue() -> Bool { (self as? Checkpointer)?.checkpointIfDue() ?? false }

    func rewrite() throws(LarderError) { try (self as? Checkpointer)?.rewrite() }
}
