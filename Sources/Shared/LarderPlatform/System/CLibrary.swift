// Imports the system's C library, and defines common names for what differs between systems.

#if canImport(Glibc)
    @_exported import Glibc
#elseif canImport(Musl)
    @_exported import Musl
#else
    @_exported import Darwin
#endif

// MARK: System calls that have the same names as methods

@inlinable @inline(__always) package func systemRead(
    _ descriptor: Int32, _ start: UnsafeMutableRawPointer?, _ count: Int
) -> Int { read(descriptor, start, count) }

@inlinable @inline(__always) package func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int)
    -> Int
{ write(descriptor, start, count) }

package func systemPoll(_ entries: UnsafeMutablePointer<pollfd>, _ count: nfds_t, _ milliseconds: Int32) -> Int32 {
    poll(entries, count, milliseconds)
}

@inlinable @inline(__always) @discardableResult package func systemClose(_ descriptor: Int32) -> Int32 {
    close(descriptor)
}

@inlinable @inline(__always) package func systemFree(_ memory: UnsafeMutableRawPointer?) { free(memory) }

func systemRename(_ path: String, _ other: String) -> Int32 { rename(path, other) }

func systemConnect(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
    connect(descriptor, address, length)
}

package func systemListen(_ descriptor: Int32, _ backlog: Int32) -> Int32 { listen(descriptor, backlog) }

func systemBind(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
    bind(descriptor, address, length)
}

// MARK: Memory

/// Memory that the system maps directly, without an allocator: it becomes resident when it is first used, and is
/// returned to the system at once.
package enum PageMemory {
    /// Maps `count` bytes of zeros.
    /// - Parameter isResident: whether all of it is about to be used. Then the system provides it at once, if it can,
    ///   which costs less than a page fault for each 4 KiB.
    package static func map(_ count: Int, isResident: Bool = false) -> UnsafeMutableRawPointer {
        #if canImport(Darwin)
            let flags = MAP_PRIVATE | MAP_ANON
        #else
            let flags = MAP_PRIVATE | MAP_ANONYMOUS | (isResident ? MAP_POPULATE : 0)
        #endif
        guard let start = mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0), start != MAP_FAILED else {
            fatalError("out of memory: \(count) bytes")
        }
        return start
    }

    /// Removes a mapping made by ``map(_:)``.
    package static func unmap(_ start: UnsafeMutableRawPointer, _ count: Int) { munmap(start, count) }

    /// Returns the memory of a part of a mapping to the system. The part stays mapped; its content is lost.
    package static func discard(_ start: UnsafeMutableRawPointer, _ count: Int) {
        _ = madvise(start, count, Int32(MADV_DONTNEED))
    }
}

// MARK: Constants

#if canImport(Darwin)
    /// The flags for send(2). This system has none against SIGPIPE; ``UnixSocket/make()`` sets a socket option instead.
    package var noSignal: Int32 { 0 }
#else
    /// The flag of send(2) that prevents SIGPIPE.
    @inlinable package var noSignal: Int32 { Int32(MSG_NOSIGNAL) }
#endif

#if canImport(Glibc)
    let streamSocket = Int32(SOCK_STREAM.rawValue)
    let datagramSocket = Int32(SOCK_DGRAM.rawValue)
    typealias ResourceNumber = __rlimit_resource_t
    let openFilesNumber = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    let fileSizeNumber = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    /// The argument of getrusage(2) for this process.
    package let ownUsage = __rusage_who_t(RUSAGE_SELF.rawValue)
#else
    let streamSocket = Int32(SOCK_STREAM)
    let datagramSocket = Int32(SOCK_DGRAM)
    typealias ResourceNumber = Int32
    let openFilesNumber = RLIMIT_NOFILE
    let fileSizeNumber = RLIMIT_FSIZE
    /// The argument of getrusage(2) for this process.
    package let ownUsage = RUSAGE_SELF
#endif

/// Returns the system's description of an error number.
package enum SystemErrorText {
    package static func of(_ number: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress, strerror_r(number, start, buffer.count) == 0 else {
                return "error \(number)"
            }
            return String(cString: start)
        }
    }
}
