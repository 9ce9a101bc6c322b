// larderctl, the command line to a running larderd. `larderctl help` says what it can do.

import LarderClient
import Platform

guard StandardDescriptors.fill() else { exit(ExitCode.inputOutput.rawValue) }
exit(Tool.run(ProcessArguments.words).rawValue)
