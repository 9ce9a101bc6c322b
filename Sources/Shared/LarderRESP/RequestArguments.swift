// The arguments of a command, for callers that read several of them.

/// The positions of the arguments of a parser's current command. Valid until the next mutating call of the parser; then
/// call ``RequestParser/currentArguments()`` again.
///
/// Returns the same bytes as ``RequestParser/argument(_:)``, at the cost of two loads.
@usableFromInline package struct RequestArguments {
    @usableFromInline let start: UnsafeRawPointer
    @usableFromInline let slices: UnsafePointer<ArgumentTable.Slice>
    /// The number of arguments, including the name.
    @usableFromInline package let count: Int

    /// An argument; 0 is the name.
    @inlinable package subscript(index: Int) -> UnsafeRawBufferPointer {
        precondition(index >= 0 && index < count, "no such argument")
        let slice = slices[index]
        return UnsafeRawBufferPointer(start: start + Int(slice.offset), count: Int(slice.length))
    }
}
