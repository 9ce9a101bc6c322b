// package-catalog: keeps this machine's package records in a larder, and queries them. Arguments.swift parses the
// command line; each verb has a file.

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

exit(await Catalog.main(Array(CommandLine.arguments.dropFirst())))
