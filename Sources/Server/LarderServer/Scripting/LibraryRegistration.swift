import CLarderLuaBridge
import LarderPlatform

/// Collects the functions that a library registers while it is loaded, and stops a library that takes too long.
///
/// Used by one thread.
final class LibraryRegistration {
    struct Declaration {
        let name: String
        let description: [UInt8]?
        let flags: UInt32
    }

    private(set) var declarations: [Declaration] = []
    private var names: Set<String> = []
    private var log: ScriptLog
    private let end: Int64

    /// The time limit of Redis.
    private static let nanosecondsMax: Int64 = 500_000_000

    init(log: ScriptLog) {
        self.log = log
        end = MonotonicClock.nanoseconds() + Self.nanosecondsMax
    }

    /// The callbacks for the interpreter. Valid as long as this object exists.
    var host: larder_script_host {
        larder_script_host(
            context: Unmanaged.passUnretained(self).toOpaque(),
            // A library being loaded cannot run commands.
            call: { _, _, _, _, _ in ScriptEnding.abandoned.rawValue },
            interrupt: { LibraryRegistration.of($0)?.isTooLong == true ? ScriptEnding.timedOut.rawValue : 0 },
            weigh: { _ in 0 },
            log: { context, level, text, count in
                LibraryRegistration.of(context)?.log.add(Int(level), UnsafeRawBufferPointer(start: text, count: count))
            },
            knows: larder_script_host.knowsCommand, sha1: larder_script_host.hashesText)
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> LibraryRegistration? {
        context.map { Unmanaged<LibraryRegistration>.fromOpaque($0).takeUnretainedValue() }
    }

    private var isTooLong: Bool { MonotonicClock.nanoseconds() > end }

    /// Adds a function, or returns the error.
    static let add:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<larder_script_declaration>?) -> UnsafePointer<CChar>? =
            {
                context, declaration in
                guard let registration = LibraryRegistration.of(context), let declaration else { return nil }
                return registration.add(declaration.pointee).map {
                    // A static string is zero-terminated, and is never freed.
                    UnsafeRawPointer($0.utf8Start).assumingMemoryBound(to: CChar.self)
                }
            }

    private func add(_ declaration: larder_script_declaration) -> StaticString? {
        let bytes = UnsafeRawBufferPointer(declaration.name)
        guard FunctionLibrary.isName(bytes) else { return FunctionLibrary.nameRule }
        let name = String(decoding: bytes, as: UTF8.self)
        // Refuse names that differ only in case: FCALL could not distinguish them.
        guard names.insert(name.lowercased()).inserted else { return "Function already exists in the library" }
        declarations.append(
            Declaration(
                name: name,
                description: declaration.is_described
                    ? Array(UnsafeRawBufferPointer(declaration.description)) : nil,
                flags: declaration.flags))
        return nil
    }
}
