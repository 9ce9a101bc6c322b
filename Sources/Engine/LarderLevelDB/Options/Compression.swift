/// The compression of table blocks. Each block records its compression, so the option may change for an existing
/// database; it applies to later writes.
package enum Compression: Hashable, Sendable {
    /// No compression, for values that are already compressed.
    case none
    /// Snappy, a fast compression. Blocks that do not shrink by at least an eighth are stored uncompressed.
    case snappy
}
