import CLarderLuaBridge
import LarderPlatform

/// Collects the functions that a library registers while its code runs. Stops the code at a time limit.
///
/// Used by only one thread.
final class LibraryRegistration {
    private(set) var declarations: [(name: String, description: [UInt8]?, flags: UInt32)] = []
    private var names: Set<String> = []
    private var log: ScriptLog
    private let end: Int64

    /// The time limit for loading a library, as in Redis: 500 ms.
    private static let nanosecondsMax: Int64 = 500_000_000

    init(log: ScriptLog) {
        self.log = log
        end = MonotonicClock.nanoseconds() + Self.nanosecondsMax
    }

    /// The callbacks for the interpreter. They are valid as long as this object exists.
    var host: larder_script_host {
        larder_script_host(
            context: Unmanaged.passUnretained(self).toOpaque(),
            // A library must not call commands while its code is being loaded.
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

    /// The interpreter's callback that adds a function. Returns the error message; nil if there is no error.
    static let add:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<larder_script_declaration>?) -> UnsafePointer<CChar>? =
            {
                context, declaration in
                guard let registration = LibraryRegistration.of(context), let declaration else { return nil }
                return registration.add(declaration.pointee).map {
                    // A static string ends with a zero byte, and is never freed.
                    UnsafeRawPointer($0.utf8Start).assumingMemoryBound(to: CChar.self)
                }
            }

    private func add(_ declaration: larder_script_declaration) -> StaticString? {
        let bytes = UnsafeRawBufferPointer(declaration.name)
        guard FunctionLibrary.isName(bytes) else { return FunctionLibrary.nameRule }
        let name = String(decoding: bytes, as: UTF8.self)
        // Refuse names that differ only in case, because FCALL ignores case.
        guard names.insert(name.lowercased()).inserted else { return "Function already exists in the library" }
        let description = declaration.is_described ? Array(UnsafeRawBufferPointer(declaration.description)) : nil
        declarations.append((name, description, declaration.flags))
        return nil
    }
}
