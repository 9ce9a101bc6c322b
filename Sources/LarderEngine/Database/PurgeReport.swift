/// What a purge removed.
package struct PurgeReport: Sendable, Equatable {
    package var entries = 0
    /// The bytes of the files that were given up, or of the keys and values that were removed from files that stay.
    package var bytes = 0
    package var milliseconds: Int64 = 0

    package init() {}

    package mutating func add(_ other: PurgeReport) {
        entries += other.entries
        bytes += other.bytes
        milliseconds += other.milliseconds
    }
}
