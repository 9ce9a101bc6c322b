/// The program of this process.
package enum Program {
    /// Its path; if the system does not report it, its name as it was called.
    package static let path: String = {
        #if os(Linux)
            if let path = FileSystem.canonical("/proc/self/exe") { return path }
        #endif
        let called = CommandLine.arguments.first ?? ""
        return FileSystem.canonical(called) ?? called
    }()
}
