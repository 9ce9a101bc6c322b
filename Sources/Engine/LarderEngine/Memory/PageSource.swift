import LarderPlatform

/// Provides pages of 16 KiB for the entries of all tables of the process. Unused pages are returned to the system,
/// except a few.
///
/// Thread-safe. `@unchecked Sendable`: `lock` guards everything.
final class PageSource: @unchecked Sendable {
    static let shared = PageSource()
    static let pageBytes = 16_384
    /// The number of pages that are mapped at once: 1 MiB.
    private static let mappedAtOnce = 64
    /// The maximum number of unused pages that keep their memory, so that it need not be cleared again.
    private static let warmCountMax = 64

    private let lock = Lock()
    private var warm: [UnsafeMutableRawPointer] = []
    private var cold: [UnsafeMutableRawPointer] = []

    /// Returns a page with any content.
    func take() -> UnsafeMutableRawPointer {
        lock.withLock {
            if let page = warm.popLast() ?? cold.popLast() { return page }
            let start = PageMemory.map(Self.mappedAtOnce * Self.pageBytes, isResident: true)
            // The pages at low addresses are used first.
            for index in (1..<Self.mappedAtOnce).reversed() { cold.append(start + index * Self.pageBytes) }
            return start
        }
    }

    /// Takes back a page, which the caller no longer uses.
    func giveBack(_ page: UnsafeMutableRawPointer) {
        lock.withLock {
            if warm.count < Self.warmCountMax { return warm.append(page) }
            PageMemory.discard(page, Self.pageBytes)
            cold.append(page)
        }
    }
}
