// larderctl, the command line to a running larderd. `larderctl help` says what it can do.

import LarderClient

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

guard StandardDescriptors.fill() else { exit(ExitCode.inputOutput.rawValue) }
exit(Tool.run(ProcessArguments.words).rawValue)
