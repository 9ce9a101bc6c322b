// larderctl, the command line to a running larderd. `larderctl help` says what it can do.

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

exit(Tool.run(ProcessArguments.words).rawValue)
