/// The program of this process.
package enum Program {
    /// Its path; as it was called where the system does not tell.
    package static let path: String = {
        #if os(Linux)
            if let path = FileSystem.canonical("/proc/self/exe") { return path }
        #endif
        let called = CommandLine.arguments.first ?? ""
        return FileSystem.canonical(called) ?? called
    }()
}
