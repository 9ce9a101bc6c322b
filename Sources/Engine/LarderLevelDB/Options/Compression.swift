/// The compression of table blocks. Each block records its compression, so this may change for an existing database; it
/// applies to later writes.
package enum Compression: Hashable, Sendable {
    /// None. For values that are compressed already.
    case none
    /// Snappy: fast. Blocks that do not shrink by an eighth are stored as they are.
    case snappy
}
