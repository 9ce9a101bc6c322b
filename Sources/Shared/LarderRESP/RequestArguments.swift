// Fast access to the arguments of a command, for callers that read several of them.

/// The arguments of a parser's current command. Valid until the next mutating call of the parser; after it, call
/// ``RequestParser/currentArguments()`` again.
///
/// Returns the same bytes as ``RequestParser/argument(_:)``, but faster: an access reads only two values from memory.
@usableFromInline package struct RequestArguments {
    @usableFromInline let start: UnsafeRawPointer
    @usableFromInline let slices: UnsafePointer<ArgumentTable.Slice>
    /// The number of arguments, including the command's name.
    @usableFromInline package let count: Int

    /// The argument at an index; index 0 is the command's name.
    @inlinable package subscript(index: Int) -> UnsafeRawBufferPointer {
        precondition(index >= 0 && index < count, "no such argument")
        let slice = slices[index]
        return UnsafeRawBufferPointer(start: start + Int(slice.offset), count: Int(slice.length))
    }
}
