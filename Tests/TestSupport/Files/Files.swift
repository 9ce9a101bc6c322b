import Platform
import TestSupport

@testable import LarderEngine

// What tests do to files behind the engine's back.

enum Files {
    static func write(_ path: String, _ bytes: [UInt8]) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FileError(operation: "create", path: path, number: errno) }
        defer { close(file) }
        try FileSystem.writeAll(bytes, descriptor: file, path: path)
    }

    static func read(_ path: String) throws -> [UInt8] {
        try FileSystem.read(path, bytesMax: 1 << 30) ?? []
    }

    static func truncate(_ path: String, to size: Int) throws {
        try write(path, Array(try read(path).prefix(size)))
    }

    /// Flips all bits of the byte at `offset`.
    static func flip(_ path: String, at offset: Int) throws {
        var bytes = try read(path)
        bytes[offset] ^= 0xFF
        try write(path, bytes)
    }

    /// Flips one bit, which a checksum finds again.
    static func flipBit(_ path: String, at offset: Int) throws {
        var bytes = try read(path)
        bytes[offset] ^= 1
        try write(path, bytes)
    }

    /// Has CURRENT name a manifest that never was: nothing says what counts.
    static func misleadCurrent(_ epoch: String) throws {
        try write(epoch + "/CURRENT", Array("MANIFEST-009999\n".utf8))
    }

    static func remove(_ path: String) throws { try FileSystem.removeTree(path) }

    /// Copies a directory with what is in it.
    static func copy(_ from: String, to: String) throws {
        try FileSystem.makeDirectories(to)
        for name in try FileSystem.list(from) {
            if FileSystem.isDirectory(from + "/" + name) {
                try copy(from + "/" + name, to: to + "/" + name)
            } else {
                try write(to + "/" + name, try read(from + "/" + name))
            }
        }
    }

    /// The names in a directory that end so.
    static func names(in path: String, endingWith suffix: String) throws -> [String] {
        try FileSystem.list(path).filter { $0.hasSuffix(suffix) }
    }
}

extension TestLarder {
    /// The directory of a database.
    func directory(of name: String = "books") -> String { path + "/" + name }

    /// The directory of the epoch that POINTER names.
    func epochDirectory(of name: String = "books") throws -> String {
        let pointer = try PointerFile(parsing: try Files.read(directory(of: name) + "/POINTER"))
        return directory(of: name) + "/\(pointer.epoch)"
    }

    /// The directories of all epochs.
    func epochs(of name: String = "books") throws -> [String] {
        try FileSystem.list(directory(of: name)).filter { UInt64($0) != nil }
    }

    var setAside: [String] { (try? FileSystem.list(path + "/DAMAGED")) ?? [] }
}

extension Checkpointing {
    /// What databases do not ask for, and tests do.
    @discardableResult
    func checkpointIfDue() -> Bool { (self as? Checkpointer)?.checkpointIfDue() ?? false }

    func rewrite() throws(LarderError) { try (self as? Checkpointer)?.rewrite() }
}
