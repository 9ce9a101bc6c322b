// The C library, under one import for every system that Larder runs on.
#if canImport(Glibc)
    @_exported import Glibc
#elseif canImport(Musl)
    @_exported import Musl
#else
    @_exported import Darwin
#endif

/// write(2), for types that have a `write` of their own.
func posixWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
    write(descriptor, start, count)
}

/// Whether the other end of a connected socket is closed altogether, not only for writing.
func hasHungUp(_ descriptor: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: 0, revents: 0)
    return poll(&entry, 1, 0) > 0 && Int32(entry.revents) & Int32(POLLHUP) != 0
}

/// close(2), for types that have a `close` of their own.
func closeDescriptor(_ descriptor: Int32) { close(descriptor) }
