import LarderEngine
import LarderPlatform
import LarderServer

exit(Daemon.main(Array(CommandLine.arguments.dropFirst())))
