// larderctl, the command line for a running larderd. `larderctl help` lists its verbs.

import LarderClient
import LarderPlatform

guard StandardDescriptors.fill() else { exit(ExitCode.inputOutput.rawValue) }
exit(Tool.run(Tool.words).rawValue)
