/// Commands that use a value as a sequence of bits.
extension CommandMetadata {
    static let bits: [CommandMetadata] = [.setbit, .getbit, .bitcount, .bitpos, .bitop, .bitfield, .bitfieldReadonly]

    package static let setbit = CommandMetadata(
        "setbit", arity: 4, [.write, .denyOOM, .creates], keys: .one, group: .bitmap, since: "2.2.0",
        complexity: "O(N) with N the value's length", syntax: "key offset value",
        summary: "Sets one bit; a shorter value is first extended with zeros. The entry keeps its deadline rule "
            + "and gets a new storage time.", reply: "integer: the previous bit", tag: .setbit)

    package static let getbit = CommandMetadata(
        "getbit", arity: 3, [.readonly, .fast], keys: .one, group: .bitmap, since: "2.2.0", syntax: "key offset",
        summary: "Returns one bit.", reply: "integer; 0 after the value's end")

    package static let bitcount = CommandMetadata(
        "bitcount", arity: -2, [.readonly], keys: .one, group: .bitmap, since: "2.6.0",
        complexity: "O(N) with N the value's length", syntax: "key [start end [BYTE | BIT]]",
        summary: "Counts the set bits.", reply: "integer; 0 when there is no fresh entry")

    package static let bitpos = CommandMetadata(
        "bitpos", arity: -3, [.readonly], keys: .one, group: .bitmap, since: "2.8.7",
        complexity: "O(N) with N the value's length", syntax: "key bit [start [end [BYTE | BIT]]]",
        summary: "Returns the position of the first bit that is 1 or 0.",
        reply: "integer; -1 when there is none; without an end, 0 is found after the value at the latest")

    package static let bitop = CommandMetadata(
        "bitop", arity: -4, [.write, .denyOOM, .creates], keys: KeyPositions(first: 2, last: -1, step: 1),
        group: .bitmap, since: "2.6.0", complexity: "O(N) with N the values' lengths together",
        syntax: "AND | OR | XOR | NOT destination key [key ...]",
        summary: "Combines values bit by bit and stores the result; shorter values are extended with zeros. If "
            + "no source has a value, the destination is removed.", reply: "integer: the length of the result",
        access: ["OW update", "RO access"], tag: .bitop)

    package static let bitfield = CommandMetadata(
        "bitfield", arity: -2, [.write, .denyOOM, .creates], keys: .one, group: .bitmap, since: "3.2.0",
        complexity: "O(N) with N the value's length, and O(1) for each operation",
        syntax: "key [GET type offset | [OVERFLOW WRAP | SAT | FAIL] SET type offset value | INCRBY type offset "
            + "increment] ...",
        summary: "Reads and writes integers of 1 to 64 bits in a value; a written entry keeps its deadline rule "
            + "and gets a new storage time.",
        reply: "array of integers; null if OVERFLOW FAIL stopped an operation",
        access: ["RW access update variable_flags"],
        keyUse: .readsIfOnlyGET, keyNotes: "It may read, change or do both.", tag: .setbit)

    package static let bitfieldReadonly = CommandMetadata(
        "bitfield_ro", arity: -2, [.readonly, .fast], keys: .one, group: .bitmap, since: "6.0.0",
        complexity: "O(1) for each operation", syntax: "key [GET type offset ...]",
        summary: "Reads integers of 1 to 64 bits in a value.", reply: "array of integers")
}
