import LarderEngine
import LarderServer

exit(Daemon.main(Array(CommandLine.arguments.dropFirst())))
