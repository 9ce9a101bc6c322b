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

/// close(2), for types that have a `close` of their own.
func closeDescriptor(_ descriptor: Int32) { close(descriptor) }
