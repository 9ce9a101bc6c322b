import LarderEngine
import LarderServer
import Platform

exit(Daemon.main(Array(CommandLine.arguments.dropFirst())))
