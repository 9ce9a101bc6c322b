// package-catalog: keeps this machine's package records in a larder, and asks it about them.
// Arguments.swift says what it understands; each verb has a file.

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

exit(Catalog.main(Array(CommandLine.arguments.dropFirst())))
