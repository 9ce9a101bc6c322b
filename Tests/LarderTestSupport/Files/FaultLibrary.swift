import LarderPlatform

/// The library that is preloaded into a program under test (`Tests/FaultLibrary/preload.c`), compiled at its first use.
///
/// SwiftPM does not build the library, because it must not be linked into the tests or built with their sanitizer. The
/// library requires Linux with glibc.
package enum FaultLibrary {
    package static var isAvailable: Bool {
        #if os(Linux) && canImport(Glibc)
            true
        #else
            false
        #endif
    }

    /// Returns the path of the compiled library.
    package static func path() throws -> String { try compiled.get() }

    private static let compiled = Result { try compile() }

    private static func compile() throws -> String {
        let sources = ["preload.c", "include/faults.h"].map { directory + "/" + $0 }
        // The library is named after a digest of its sources, so that an outdated build is never used. It is built
        // under a temporary name and renamed when it is complete, because several processes may build it at once.
        let digest = try sources.reduce(UInt64(14_695_981_039_346_656_037)) { digest, path in
            try Files.read(path).reduce(digest) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
        }
        let program = try DaemonProcess.program()
        let products = String(program.prefix(upTo: program.lastIndex(of: "/") ?? program.startIndex))
        let library = "\(products)/libfaults-\(String(digest, radix: 16)).so"
        if access(library, R_OK) == 0 { return library }
        let temporary = "\(library).\(getpid())"
        let (end, _, errors) = try ChildProcess.run(
            "cc",
            [
                "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", sources[0], "-o",
                temporary, "-ldl",
            ])
        guard end == .exited(0) else {
            throw ChildProcess.Failure(description: "cc cannot compile \(sources[0]): \(errors)")
        }
        guard rename(temporary, library) == 0 else {
            throw ChildProcess.Failure(description: "cannot rename \(temporary): \(String(cString: strerror(errno)))")
        }
        return library
    }

    private static let directory = PackageRoot.path + "/Tests/FaultLibrary"
}
