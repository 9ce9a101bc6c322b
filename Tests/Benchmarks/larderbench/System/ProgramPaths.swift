import LarderPlatform

/// Paths of programs.
enum ProgramPaths {
    /// The path of a program in the directory of this one.
    static func beside(_ name: String) -> String {
        guard let slash = own.lastIndex(of: "/") else { return name }
        return own[...slash] + name
    }

    /// The path of this program.
    static var own: String {
        #if os(Linux)
            var buffer = [CChar](repeating: 0, count: 4096)
            let count = readlink("/proc/self/exe", &buffer, buffer.count)
            if count > 0 { return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) }
        #endif
        return CommandLine.arguments.first ?? ""
    }
}
