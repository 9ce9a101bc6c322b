// The arguments of a command, for those who look at several of them.

/// Where the arguments of a parser's current command lie. Valid until the next mutating call of the parser, which is whom
/// to ask for it again: ``RequestParser/currentArguments()``.
///
/// The same as ``RequestParser/argument(_:)``, at the cost of two loads.
@usableFromInline package struct RequestArguments {
    @usableFromInline let start: UnsafeRawPointer
    @usableFromInline let slices: UnsafePointer<ArgumentTable.Slice>
    /// The name included.
    @usableFromInline package let count: Int

    /// An argument; 0 is the name.
    @inlinable package subscript(index: Int) -> UnsafeRawBufferPointer {
        precondition(index >= 0 && index < count, "no such argument")
        let slice = slices[index]
        return UnsafeRawBufferPointer(start: start + Int(slice.offset), count: Int(slice.length))
    }
}
