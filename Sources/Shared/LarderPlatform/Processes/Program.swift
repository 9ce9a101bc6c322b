/// The program that this process runs.
package enum Program {
    /// The path of this program; if the system does not report it, the name with which it was started.
    package static let path: String = {
        #if os(Linux)
            if let path = FileSystem.canonical("/proc/self/exe") { return path }
        #endif
        let called = CommandLine.arguments.first ?? ""
        return FileSystem.canonical(called) ?? called
    }()
}
