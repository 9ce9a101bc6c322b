/// How table blocks are compressed. Reading finds out by itself, block by block: changing this for an existing database
/// is allowed and concerns what is written from then on.
package enum Compression: Hashable, Sendable {
    /// Not at all. For values that are compressed already.
    case none
    /// With snappy: fast, and blocks that do not shrink by an eighth are stored as they are.
    case snappy
}
