import LarderPlatform

/// The memory of one table's entries. An ``EntryReference`` is the number of a page (21 bits) and the offset in the
/// page in units of 8 bytes (11 bits), so that each entry costs the table 4 bytes instead of a pointer.
///
/// A page contains cells of one size. A size with few entries has small pages, so that a small table takes little
/// memory. An entry that is longer than the largest cell has its own block (``EntryBlock``), which takes the number of
/// a page. Empty pages are freed at once. If many cells of a size are free, the table moves the entries out of one of
/// the pages (``takeSparsePage()``).
///
/// Unsafe: callers pass only references of entries that they have not freed. In debug builds, which run the tests,
/// every reference is checked, freed cells are filled with a pattern, and the pattern is checked when the cell is
/// used again.
struct EntryMemory {
    private struct Page {
        /// The size of a cell in units of 8 bytes; 0 for the page number of a block, and for unused numbers.
        var cellUnits: UInt16 = 0
        /// The number of cells.
        var cells: UInt16 = 0
        /// The number of cells with an entry.
        var live: UInt16 = 0
        /// The start of the part that was never used, in units.
        var used: UInt16 = 0
        /// The offset of the first free cell before `used`, in units; ``none`` if there is none. Each free cell
        /// contains the offset of the next one.
        var free: UInt16 = none
        /// Whether the page is from the ``PageSource``. If not, it is from the C library's allocator.
        var isWhole = false
        /// Links of the list of pages that have free cells. `next` also links unused numbers.
        var next: UInt32 = 0
        var previous: UInt32 = 0

        static let none = UInt16.max
    }

    /// The pages with cells of one size.
    private struct SizeClass {
        /// The first and the last page with free cells; 0 if there is none.
        var first: UInt32 = 0
        var last: UInt32 = 0
        /// The number of all cells, and of those with an entry.
        var cells = 0
        var live = 0
        /// The number of cells of the newest page.
        var pageCells = 0

        /// Whether so many cells are free that a page can be freed by moving its entries: more than a page, and a 16th
        /// of all cells.
        var isSparse: Bool { cells - live > pageCells + cells >> 4 }
    }

    private static let unitBits: UInt32 = 11
    private static let unitMask: UInt32 = (1 << unitBits) - 1
    private static let pageNumberLimit = 1 << (32 - 11)
    private static let smallPageBytesMin = 512
    private static let poison: UInt8 = 0xDB
    #if DEBUG
        private static let isChecked = true
    #else
        private static let isChecked = false
    #endif

    /// The addresses of the pages, and of the heads of entries in blocks, by page number. Number 0 is not used.
    private var bases: UnsafeMutablePointer<UnsafeMutableRawPointer>
    private var pages: UnsafeMutablePointer<Page>
    private var classes: UnsafeMutablePointer<SizeClass>
    private var capacity = 0
    private var pageCount = 1
    /// The first unused page number less than `pageCount`; 0 if there is none.
    private var unusedNumber: UInt32 = 0
    private var numbersInUse = 0
    /// The size of all pages and blocks, in bytes.
    private(set) var byteCount = 0
    /// Whether a size may be sparse.
    private(set) var maybeSparse = false
    private var sparseIndex = 0
    /// The length of the shortest record, as stored, for which an entry always has its own block, so that it can be
    /// pinned.
    let blockBytesMin: Int

    init(blockBytesMin: Int) {
        self.blockBytesMin = blockBytesMin
        // Nothing is allocated for a table without entries.
        bases = UnsafeMutablePointer.allocate(capacity: 0)
        pages = UnsafeMutablePointer.allocate(capacity: 0)
        classes = UnsafeMutablePointer.allocate(capacity: 0)
    }

    /// Frees all entries.
    mutating func removeAll() {
        deallocate()
        self = EntryMemory(blockBytesMin: blockBytesMin)
    }

    /// Frees everything. The structure must not be used again.
    func deallocate() {
        for number in 1..<max(1, pageCount) { freeMemory(number) }
        bases.deallocate()
        pages.deallocate()
        classes.deallocate()
    }

    private func freeMemory(_ number: Int) {
        let page = pages[number]
        if page.cellUnits == 0 {
            if page.live > 0 { EntryBlock.free(EntryPointer(bases[number])) }
        } else if page.isWhole {
            PageSource.shared.giveBack(bases[number])
        } else {
            systemFree(bases[number])
        }
    }

    /// Whether few page numbers are left, so that no clean entries may be added.
    var isNearlyFull: Bool { numbersInUse > Self.pageNumberLimit / 16 * 15 }

    // MARK: Entries

    /// Returns the entry with a reference.
    @inline(__always)
    func entry(_ reference: EntryReference) -> EntryPointer {
        if Self.isChecked { check(reference) }
        return EntryPointer(bases[Int(reference >> Self.unitBits)] + Int(reference & Self.unitMask) << 3)
    }

    /// Terminates the process if a reference is not that of a present entry.
    private func check(_ reference: EntryReference) {
        let (number, unit) = (Int(reference >> Self.unitBits), UInt16(reference & Self.unitMask))
        precondition(number > 0 && number < pageCount, "a reference to no page")
        let page = pages[number]
        precondition(page.live > 0, "a reference to an empty page")
        if page.cellUnits == 0 {
            precondition(unit == 0, "a reference into a block")
        } else {
            precondition(unit < page.used && unit % page.cellUnits == 0, "a reference to no cell")
        }
        let entry = EntryPointer(bases[number] + Int(unit) << 3)
        precondition(entry.place != .free, "a reference to a free cell")
        precondition(entry.isBlock == (page.cellUnits == 0), "a reference to a cell of another kind")
        precondition(entry.isBlock || entry.byteCount == Int(page.cellUnits) << 3, "a cell of a wrong size")
    }

    /// Whether an entry with these lengths has a block of its own.
    private func needsBlock(key: Int, record: Int, hasRoom: Bool) -> Bool {
        record > blockBytesMin  // Such a record is packed as stored, so it has one byte more.
            || EntryPointer.byteCount(key: key, record: record, hasRoom: hasRoom) > CellSize.bytesMax
            || key >= EntryPointer.lengthLimit
    }

    /// Allocates memory for a key and a record of `recordCount` bytes. Writes the key, but not the record.
    mutating func make(
        _ key: UnsafeRawBufferPointer, recordCount: Int, hasRoom: Bool = false
    ) -> (EntryReference, EntryPointer) {
        if needsBlock(key: key.count, record: recordCount, hasRoom: hasRoom) {
            let entry = EntryBlock.make(key, recordCount: recordCount, hasRoom: hasRoom)
            return (adopt(entry), entry)
        }
        let count = EntryPointer.byteCount(key: key.count, record: recordCount, hasRoom: hasRoom)
        let (reference, address) = allocate(CellSize.bytes(count))
        let entry = EntryPointer(at: address, key, recordCount: recordCount, isBlock: false, hasRoom: hasRoom)
        return (reference, entry)
    }

    /// Takes over an entry in a block.
    mutating func adopt(_ entry: EntryPointer) -> EntryReference {
        let number = newNumber()
        pages[number] = Page(live: 1)
        bases[number] = entry.address
        byteCount += entry.byteCount
        return UInt32(number) << Self.unitBits
    }

    /// Returns whether an entry can have a record of `count` bytes in its present memory.
    func fits(_ entry: EntryPointer, _ count: Int) -> Bool {
        let isBlock = needsBlock(key: entry.keyCount, record: count, hasRoom: entry.hasRoom)
        guard isBlock == entry.isBlock else { return false }
        if isBlock { return EntryBlock.fits(entry, count) }
        let needed = EntryPointer.byteCount(key: entry.keyCount, record: count, hasRoom: entry.hasRoom)
        return CellSize.bytes(needed) == entry.byteCount
    }

    /// Frees the memory of an entry. Its attachment must be detached first.
    mutating func free(_ reference: EntryReference) {
        let entry = entry(reference)
        let number = Int(reference >> Self.unitBits)
        let page = pages + number
        guard page.pointee.cellUnits > 0 else {
            byteCount -= entry.byteCount
            EntryBlock.free(entry)
            return giveBackNumber(number)
        }
        clear(entry, next: page.pointee.free, Int(page.pointee.cellUnits) << 3)
        page.pointee.free = UInt16(reference & Self.unitMask)
        page.pointee.live -= 1
        let sizeClass = classes + CellSize.index(Int(page.pointee.cellUnits) << 3)
        sizeClass.pointee.live -= 1
        if page.pointee.live == page.pointee.cells - 1 { link(number, sizeClass) }
        if sizeClass.pointee.live == 0 {
            while sizeClass.pointee.first > 0 { release(Int(sizeClass.pointee.first)) }
            return
        }
        if page.pointee.live == 0 {
            let otherFree = sizeClass.pointee.cells - sizeClass.pointee.live - Int(page.pointee.cells)
            // Keep the page if it has nearly all free cells of its size, which the next entry may need.
            if otherFree > sizeClass.pointee.pageCells / 2 { return release(number) }
        }
        if sizeClass.pointee.isSparse { maybeSparse = true }
    }

    // MARK: Cells

    /// Marks a cell as free.
    private func clear(_ entry: EntryPointer, next: UInt16, _ byteCount: Int) {
        entry.position = UInt32(next)
        entry.place = .free
        if Self.isChecked {
            UnsafeMutableRawBufferPointer(start: entry.address + 8, count: byteCount - 8)
                .initializeMemory(as: UInt8.self, repeating: Self.poison)
        }
    }

    private func checkPoison(_ address: UnsafeMutableRawPointer, _ byteCount: Int) {
        let bytes = UnsafeRawBufferPointer(start: address + 8, count: byteCount - 8)
        precondition(bytes.allSatisfy { $0 == Self.poison }, "a free cell was changed")
    }

    /// Allocates a cell of a size from ``CellSize``.
    private mutating func allocate(_ byteCount: Int) -> (EntryReference, UnsafeMutableRawPointer) {
        if capacity == 0 { makeStructures() }
        let sizeClass = classes + CellSize.index(byteCount)
        if sizeClass.pointee.first == 0 { addPage(sizeClass, byteCount) }
        let number = Int(sizeClass.pointee.first)
        let page = pages + number
        var unit = page.pointee.free
        let address: UnsafeMutableRawPointer
        if unit != Page.none {
            address = bases[number] + Int(unit) << 3
            page.pointee.free = UInt16(truncatingIfNeeded: EntryPointer(address).position)
            if Self.isChecked { checkPoison(address, byteCount) }
        } else {
            unit = page.pointee.used
            address = bases[number] + Int(unit) << 3
            page.pointee.used += page.pointee.cellUnits
        }
        page.pointee.live += 1
        sizeClass.pointee.live += 1
        if page.pointee.live == page.pointee.cells { unlink(number, sizeClass) }
        return (UInt32(number) << Self.unitBits | UInt32(unit), address)
    }

    private mutating func makeStructures() {
        classes.deallocate()
        classes = .allocate(capacity: CellSize.classCount)
        classes.initialize(repeating: SizeClass(), count: CellSize.classCount)
        reserve(16)
    }

    private mutating func reserve(_ newCapacity: Int) {
        let (newBases, newPages) = (
            UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: newCapacity),
            UnsafeMutablePointer<Page>.allocate(capacity: newCapacity)
        )
        newPages.initialize(repeating: Page(), count: newCapacity)
        newBases.initialize(repeating: UnsafeMutableRawPointer(newPages), count: newCapacity)
        if capacity > 0 {
            newBases.update(from: bases, count: pageCount)
            newPages.update(from: pages, count: pageCount)
        }
        bases.deallocate()
        pages.deallocate()
        (bases, pages, capacity) = (newBases, newPages, newCapacity)
    }

    // MARK: Pages

    private mutating func newNumber() -> Int {
        numbersInUse += 1
        if unusedNumber > 0 {
            let number = Int(unusedNumber)
            unusedNumber = pages[number].next
            return number
        }
        if capacity == 0 { makeStructures() }
        if pageCount == capacity { reserve(2 * capacity) }
        // Before that, `isNearlyFull` keeps out clean entries, and checkpoints limit the others.
        guard pageCount < Self.pageNumberLimit else { fatalError("a part of a database has too many entries") }
        pageCount += 1
        return pageCount - 1
    }

    private mutating func giveBackNumber(_ number: Int) {
        pages[number] = Page(next: unusedNumber)
        unusedNumber = UInt32(number)
        numbersInUse -= 1
    }

    /// Adds a page of about a 16th of the memory that its size has already.
    private mutating func addPage(_ sizeClass: UnsafeMutablePointer<SizeClass>, _ byteCount: Int) {
        let wanted = (sizeClass.pointee.cells * byteCount) >> 4
        let isWhole = wanted >= PageSource.pageBytes
        let cells = (isWhole ? PageSource.pageBytes : max(wanted, Self.smallPageBytesMin)) / byteCount
        let number = newNumber()
        pages[number] = Page(cellUnits: UInt16(byteCount >> 3), cells: UInt16(max(1, cells)), isWhole: isWhole)
        if isWhole {
            bases[number] = PageSource.shared.take()
        } else {
            guard let memory = malloc(max(1, cells) * byteCount) else { fatalError("out of memory: a page") }
            bases[number] = memory
        }
        self.byteCount += bytes(of: pages[number])
        sizeClass.pointee.cells += Int(pages[number].cells)
        sizeClass.pointee.pageCells = Int(pages[number].cells)
        link(number, sizeClass)
    }

    private func bytes(of page: Page) -> Int {
        page.isWhole ? PageSource.pageBytes : Int(page.cells) * Int(page.cellUnits) << 3
    }

    /// Frees a page with free cells.
    private mutating func release(_ number: Int) {
        unlink(number, classes + CellSize.index(Int(pages[number].cellUnits) << 3))
        freePage(number)
    }

    /// Frees a page that is not in the list of its size, after its entries were freed or moved.
    mutating func freePage(_ number: Int) {
        let page = pages[number]
        let sizeClass = classes + CellSize.index(Int(page.cellUnits) << 3)
        sizeClass.pointee.cells -= Int(page.cells)
        sizeClass.pointee.live -= Int(page.live)
        byteCount -= bytes(of: page)
        freeMemory(number)
        giveBackNumber(number)
    }

    /// Adds a page to the list of the pages with free cells.
    private func link(_ number: Int, _ sizeClass: UnsafeMutablePointer<SizeClass>) {
        let first = sizeClass.pointee.first
        pages[number].previous = 0
        pages[number].next = first
        if first > 0 { pages[Int(first)].previous = UInt32(number) } else { sizeClass.pointee.last = UInt32(number) }
        sizeClass.pointee.first = UInt32(number)
    }

    private func unlink(_ number: Int, _ sizeClass: UnsafeMutablePointer<SizeClass>) {
        let (next, previous) = (pages[number].next, pages[number].previous)
        if previous > 0 { pages[Int(previous)].next = next } else { sizeClass.pointee.first = next }
        if next > 0 { pages[Int(next)].previous = previous } else { sizeClass.pointee.last = previous }
    }

    // MARK: Moving entries

    /// The number of pages of a size that are compared.
    private static let comparedPagesMax = 16

    /// Returns the number of a page whose entries are few enough that they fit into free cells of other pages; nil if
    /// there is none. The caller must move its entries with ``move(_:)``, and then call ``freePage(_:)``.
    mutating func takeSparsePage() -> Int? {
        guard maybeSparse else { return nil }
        for _ in 0..<CellSize.classCount {
            let sizeClass = classes + sparseIndex
            if sizeClass.pointee.isSparse, let number = sparsest(sizeClass) {
                unlink(number, sizeClass)
                return number
            }
            sparseIndex = (sparseIndex + 1) % CellSize.classCount
        }
        maybeSparse = false
        return nil
    }

    private func sparsest(_ sizeClass: UnsafeMutablePointer<SizeClass>) -> Int? {
        var (next, best) = (Int(sizeClass.pointee.last), 0)
        for _ in 0..<Self.comparedPagesMax where next > 0 {
            if best == 0 || pages[next].live < pages[best].live { best = next }
            next = Int(pages[next].previous)
        }
        // The other pages must have enough free cells.
        guard best > 0, sizeClass.pointee.cells - sizeClass.pointee.live >= Int(pages[best].cells) else { return nil }
        return best
    }

    func entries(inPage number: Int) -> [EntryReference] {
        let page = pages[number]
        return stride(from: UInt32(0), to: UInt32(page.used), by: Int(page.cellUnits))
            .filter { EntryPointer(bases[number] + Int($0) << 3).place != .free }
            .map { UInt32(number) << Self.unitBits | $0 }
    }

    /// Copies an entry to a cell of another page. The old copy is freed with its page.
    mutating func move(_ reference: EntryReference) -> (EntryReference, EntryPointer) {
        let entry = entry(reference)
        let byteCount = entry.byteCount
        let (copy, address) = allocate(byteCount)
        address.copyMemory(from: entry.address, byteCount: byteCount)
        return (copy, EntryPointer(address))
    }
}

#if DEBUG
    extension EntryMemory {
        /// Checks that pages, lists and counts agree. For tests.
        /// - Returns: the number of entries.
        func verify() -> Int {
            var (bytes, entries) = (0, 0)
            var found = [SizeClass](repeating: SizeClass(), count: CellSize.classCount)
            for number in 1..<max(1, pageCount) where pages[number].live > 0 || pages[number].cellUnits > 0 {
                let page = pages[number]
                entries += Int(page.live)
                guard page.cellUnits > 0 else {
                    bytes += EntryPointer(bases[number]).byteCount
                    continue
                }
                bytes += self.bytes(of: page)
                precondition(self.entries(inPage: number).count == Int(page.live), "a wrong number of entries")
                let size = Int(page.cellUnits) << 3
                var (free, next) = (0, page.free)
                while next != Page.none {
                    let cell = EntryPointer(bases[number] + Int(next) << 3)
                    checkPoison(cell.address, size)
                    (free, next) = (free + 1, UInt16(cell.position))
                }
                let neverUsed = Int(page.cells) - Int(page.used / page.cellUnits)
                precondition(free + neverUsed + Int(page.live) == Int(page.cells), "a wrong number of free cells")
                found[CellSize.index(size)].cells += Int(page.cells)
                found[CellSize.index(size)].live += Int(page.live)
            }
            precondition(bytes == byteCount, "a wrong number of bytes")
            if capacity > 0 { for index in 0..<CellSize.classCount { verify(classes[index], found[index]) } }
            return entries
        }

        private func verify(_ sizeClass: SizeClass, _ found: SizeClass) {
            precondition(sizeClass.cells == found.cells && sizeClass.live == found.live, "wrong counts of a size")
            var (next, previous, free) = (sizeClass.first, UInt32(0), 0)
            while next > 0 {
                let page = pages[Int(next)]
                precondition(page.previous == previous && page.live < page.cells, "a wrong list of pages")
                free += Int(page.cells - page.live)
                (previous, next) = (next, page.next)
            }
            precondition(sizeClass.last == previous && free == found.cells - found.live, "a page is in no list")
        }
    }
#endif
