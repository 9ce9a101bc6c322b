#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Whether the tests run under a sanitizer (`make asan`, `make tsan`), which takes memory of its own for each allocation:
/// what a process has in memory says nothing then.
package enum Sanitizer {
    package static let isOn = getenv("LARDER_SANITIZED") != nil
}
