import LarderPlatform
import Synchronization

/// The numbers that a larder never reuses: the sequences of its commit units, the numbers of its epochs (LevelDBs), and
/// numbers in the names of other files. They are not derived from the clock, which may be set back.
///
/// Numbers are *reserved* in the file `SEQUENCES` far ahead of their use. So taking a number needs no system call. If a
/// process is killed, the next process knows an upper bound of the used numbers.
///
/// The file also has the names of the existing databases, so that the removal of a directory is detected at the next
/// start.
///
/// Thread-safe.
final class Sequences: Sendable {
    /// The first sequence. Older versions of Larder derived sequences from the time. Until the year 4199, such
    /// sequences are lower than `first`, so the two kinds can be distinguished.
    static let first: UInt64 = 1 << 62
    /// The upper bound of sequences: in memory, the highest bit of the number has another meaning.
    static let end: UInt64 = 1 << 63
    /// The upper bound of epochs. The first epoch number is a time in milliseconds, so far below the bound that
    /// counting up never reaches the bound.
    static let epochMax: UInt64 = 1 << 62
    /// The number of sequences reserved at a time.
    static let unitsStep: UInt64 = 1 << 32
    /// If fewer reserved sequences than this are left, more are reserved.
    private static let unitsLeast: UInt64 = 1 << 31
    /// The number of epoch numbers reserved at a time.
    static let epochsStep: UInt64 = 1 << 10

    private struct State {
        var previous: SequencesFile?
        /// Whether the file existed and could not be used.
        var wasUnreadable = false
        var failure: FileError?
        var databases: Set<String> = []
        /// The databases in the file; nil if these are unknown.
        var written: Set<String>?
    }

    private let directory: String
    private var path: String { directory + "/" + SequencesFile.name }
    private let report: @Sendable (CacheEvent.Level, String) -> Void
    private let firstBase = Atomic<UInt64>(0)
    /// Whether the journal was damaged, or had an incomplete end, when it was read.
    let wasCut = Atomic<Bool>(false)
    private let unitsReserved = Atomic<UInt64>(0)
    private let epochsReserved = Atomic<UInt64>(0)
    /// The highest sequence that ``refusal(of:)`` refused, so that the next reservation includes it.
    private let wanted = Atomic<UInt64>(0)
    private let lastEpoch = Atomic<UInt64>(0)
    /// Locked while the file is written.
    private let state = Locked(State())

    init(directory: String, report: @escaping @Sendable (CacheEvent.Level, String) -> Void) {
        (self.directory, self.report) = (directory, report)
    }

    /// The file of the previous process, with the upper bounds of the numbers that earlier processes have used. Nil if
    /// the larder is new, or an older version created it, or the file is lost.
    var previous: SequencesFile? { state.withLock { $0.previous } }
    /// All sequences that this process assigns are higher than this.
    var base: UInt64 { firstBase.load(ordering: .relaxed) }

    // MARK: The start

    /// Reads the file.
    /// - Throws: `newerFormat`. A file that is damaged or cannot be read is reported, and the larder continues without
    ///   it.
    func load() throws(LarderError) {
        do {
            guard let file = try SequencesFile.read(in: directory) else { return }
            state.withLock { $0.previous = file }
            raise(lastEpoch, to: min(file.epochs, Self.epochMax))
        } catch SequencesFile.Defect.newerFormat(let version) {
            throw LarderError(
                .newerFormat,
                "\(SequencesFile.name) was written by a newer version of Larder (version \(version), this one reads "
                    + "\(SequencesFile.formatVersion))", operation: "open larder")
        } catch {
            state.withLock { $0.wasUnreadable = true }
            let why: String
            if case SequencesFile.Defect.malformed(let text)? = error as? SequencesFile.Defect {
                why = text
            } else {
                why = "\(error)"
            }
            report(
                .warning,
                "\(path) cannot be used: \(why). The used sequence numbers are estimated from the journal and the time")
        }
    }

    /// Determines the first numbers of this process, and reserves them. Called once, before any number is taken.
    /// - Parameters:
    ///   - journalEnd: the last sequence in the journal; 0 if there is none.
    ///   - now: the time in milliseconds since 1970, used if no numbers are recorded.
    func begin(behind journalEnd: UInt64, now: Int64) {
        let time = UInt64(max(0, now))
        let (previous, wasUnreadable) = state.withLock { ($0.previous, $0.wasUnreadable) }
        var base: UInt64
        if let previous {
            base = max(journalEnd, previous.commitUnits)
        } else {
            base = max(journalEnd, Self.first + min(time, 1 << 44) << 16)
            // The clock may be wrong. Epoch numbers that start at 1 << 61 or below never reach their upper bound.
            raise(lastEpoch, to: min(time, 1 << 61))
            if !wasUnreadable, journalEnd >= Self.first {
                report(
                    .warning,
                    "\(path) is lost. The used sequence numbers are estimated from the journal and the time")
            }
        }
        base = min(base, Self.end - Self.unitsStep)
        firstBase.store(base, ordering: .relaxed)
        unitsReserved.store(base, ordering: .releasing)
        extendIfNeeded(last: base)
    }

    // MARK: Databases

    /// The databases that existed when the larder was last used; none if that is unknown.
    var previousDatabases: Set<String> { previous?.databases ?? [] }

    /// Sets the databases that were found. Called before ``begin(behind:now:)``, which writes them.
    /// - Returns: the databases that are missing since the last start, and those that are back although operations of
    ///   them were dropped (``noteDropped(_:)``).
    func found(_ names: Set<String>) -> (missing: [String], back: [String]) {
        let away = previousDatabases.subtracting(names)
        let marks = away.filter { $0.hasPrefix("?") }
        let back = names.filter { marks.contains(SequencesFile.missing($0)) }
        state.withLock { $0.databases = names.union(marks).subtracting(back.map(SequencesFile.missing)) }
        return (away.subtracting(marks).sorted(), back.sorted())
    }

    /// Remembers, until it is back or created anew, that the journal has operations of a missing database, which are
    /// dropped. Called before ``begin(behind:now:)``.
    func noteDropped(_ name: String) {
        let wasThere = previousDatabases.contains(name)
        if wasThere { state.withLock { _ = $0.databases.insert(SequencesFile.missing(name)) } }
    }

    /// Records durably whether a database exists. Does two fsyncs, unless the file has this state already.
    /// - Throws: if the file could not be written. The next write of the file then includes the change.
    func note(_ name: String, exists: Bool) throws(FileError) {
        try state.withLock { (state) throws(FileError) in
            if state.databases.contains(name) != exists {
                if exists { state.databases.insert(name) } else { state.databases.remove(name) }
                state.databases.remove(SequencesFile.missing(name))
            }
            // The comparison is cheap: both sets share their storage unless a write has failed, so only pointers are
            // compared.
            if state.written != state.databases { try write(units: nil, &state) }
        }
    }

    // MARK: Commit units

    /// Returns an error if a commit unit must not be written: its sequence is not reserved, so the next process might
    /// use it again. Nil if the unit may be written. One atomic load.
    func refusal(of sequence: UInt64) -> FileError? {
        if sequence <= unitsReserved.load(ordering: .acquiring) { return nil }
        raise(wanted, to: sequence)
        return state.withLock { $0.failure } ?? FileError(operation: "reserve sequences in", path: path, number: EAGAIN)
    }

    /// Reserves more sequences when few reserved ones are left. Reserving does two fsyncs, so a background thread calls
    /// this in advance.
    /// - Parameter last: the last sequence that was taken.
    func extendIfNeeded(last: UInt64) {
        let reserved = unitsReserved.load(ordering: .relaxed)
        let last = max(last, wanted.load(ordering: .relaxed))
        guard last >= reserved || reserved - last < Self.unitsLeast else { return }
        reserve(units: last + Self.unitsStep)
    }

    /// Reserves sequences after `sequence`, which was found on the disk and is higher than all known sequences.
    func resume(behind sequence: UInt64) { reserve(units: min(sequence, Self.end) + Self.unitsStep) }

    /// Whether it is certain that the end of the journal is lost. The journal ends with the sequence `end`, but a
    /// database needs the journal up to `needed`. A number above the recorded bound proves nothing: it is from before
    /// the current numbering, which may have begun because SEQUENCES was lost.
    func isLossProven(needed: UInt64, end: UInt64) -> Bool {
        Self.isLossProven(needed: needed, end: end, previous: previous, wasCut: wasCut.load(ordering: .relaxed))
    }

    /// Like ``isLossProven(needed:end:)``, but for a larder that no process has open.
    static func isLossProven(needed: UInt64, end: UInt64, previous: SequencesFile?, wasCut: Bool) -> Bool {
        guard needed > end else { return false }
        guard needed >= first else { return wasCut && end < first }
        return previous.map { needed <= $0.commitUnits } ?? wasCut
    }

    // MARK: Epochs

    /// Returns an unused number for an epoch: no epoch of this larder has had the number, and no file name contains it.
    func nextEpoch(after previous: UInt64) -> UInt64 {
        raise(lastEpoch, to: min(previous, Self.epochMax))
        let next = lastEpoch.wrappingAdd(1, ordering: .relaxed).newValue
        // Use the number even if it cannot be reserved: a purge must be possible on a full disk, and the next start
        // finds the numbers of existing epochs on the disk.
        if next > epochsReserved.load(ordering: .acquiring) { reserve(units: nil) }
        return next
    }

    /// Records an epoch's number that was found on the disk, so that it is not reused.
    func noteEpoch(_ epoch: UInt64) {
        // Ignore numbers from `epochMax` on: epochs never reach them.
        guard epoch < Self.epochMax else { return }
        raise(lastEpoch, to: epoch)
    }

    // MARK: The file

    private func reserve(units: UInt64?) { state.withLock { try? write(units: units, &$0) } }

    /// Writes a new file, synced.
    /// - Parameter units: the new bound of sequences; nil leaves it unchanged.
    private func write(units: UInt64?, _ state: inout State) throws(FileError) {
        let file = SequencesFile(
            commitUnits: max(min(units ?? 0, Self.end - 1), unitsReserved.load(ordering: .relaxed)),
            epochs: lastEpoch.load(ordering: .relaxed) + Self.epochsStep, databases: state.databases)
        do throws(FileError) {
            if let unsynced = try FileSystem.replace(path, with: Array(file.text.utf8)) { throw unsynced }
            unitsReserved.store(file.commitUnits, ordering: .releasing)
            epochsReserved.store(file.epochs, ordering: .releasing)
            (state.failure, state.written) = (nil, file.databases)
        } catch {
            // The new file may be in place despite the error, so what the file contains is unknown.
            state.written = nil
            report(
                state.failure?.number == error.number ? .debug : .error,
                "sequences cannot be reserved: \(error). Writes will be refused when all reserved sequences are used")
            state.failure = error
            throw error
        }
    }

    /// The upper bound of the reserved sequences.
    var reservedUnits: UInt64 { unitsReserved.load(ordering: .relaxed) }

    /// The content that the file should have.
    var reserved: SequencesFile {
        SequencesFile(
            commitUnits: reservedUnits, epochs: epochsReserved.load(ordering: .relaxed),
            databases: state.withLock { $0.databases.filter { !$0.hasPrefix("?") } })
    }

    private func raise(_ number: borrowing Atomic<UInt64>, to value: UInt64) {
        if number.load(ordering: .relaxed) < value { number.max(value, ordering: .relaxed) }
    }
}

/// The small file `SEQUENCES` in a larder's directory: the bounds of the reserved numbers, and the existing databases.
///
/// It is text, with a name and a value in each line; the last line is the checksum of all previous lines:
/// ```
/// larder-sequences 3
/// commit-units 4726097177984729088
/// epochs 1700000001025
/// databases LEDGER books
/// crc32c 0a1b2c3d
/// ```
/// A new file replaces the old one by rename, so that a crash leaves one of them intact. Versions 1 and 2 have no line
/// `databases`; since version 2 the larder may have a ``Ledger``.
package struct SequencesFile: Hashable, Sendable {
    package static let name = "SEQUENCES"
    package static let formatVersion = 3
    /// The length of the longest file that is read, in bytes. A valid file is shorter, even with the maximum number of
    /// databases and the longest names.
    package static let bytesMax = 1 << 20

    /// An upper bound of the sequences of all commit units so far.
    package var commitUnits: UInt64
    /// An upper bound of the numbers of all epochs so far, and of the numbers in other files' names.
    package var epochs: UInt64
    /// The databases that have directories, including the ledger, and the missing ones (``missing(_:)``).
    package var databases: Set<String>

    package init(commitUnits: UInt64, epochs: UInt64, databases: Set<String> = []) {
        (self.commitUnits, self.epochs, self.databases) = (commitUnits, epochs, databases)
    }

    private static let kind = "larder-sequences"
    private static let names = ["commit-units", "epochs"]
    /// The value of `databases` if there are none.
    private static let none = "-"

    /// A missing database in ``databases``.
    static func missing(_ name: String) -> String { "?" + name }

    package var text: String {
        ChecksummedText.text(
            Self.kind, version: Self.formatVersion,
            [
                ("commit-units", commitUnits), ("epochs", epochs),
                ("databases", databases.isEmpty ? Self.none : databases.sorted().joined(separator: " ")),
            ])
    }

    package typealias Defect = ChecksummedText.Defect

    package init(parsing bytes: [UInt8]) throws(Defect) {
        let latest = Self.names + ["databases"]
        let text = try ChecksummedText(parsing: bytes, kind: Self.kind, names: [Self.names, Self.names, latest])
        guard let units = UInt64(text.values[0]), let epochs = UInt64(text.values[1]) else {
            throw .malformed("'commit-units' or 'epochs' is out of range")
        }
        let names = text.version < 3 ? [] : text.values[2].split(separator: " ").map(String.init)
        self.init(commitUnits: units, epochs: epochs, databases: Set(names).subtracting([Self.none]))
    }

    /// Reads the file in a larder's directory; nil if it does not exist.
    static func read(in directory: String) throws -> SequencesFile? {
        try FileSystem.read(directory + "/" + name, bytesMax: bytesMax).map { try SequencesFile(parsing: $0) }
    }
}
