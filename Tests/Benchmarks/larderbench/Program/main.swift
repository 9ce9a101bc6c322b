import LarderPlatform

exit(Bench.main(Array(CommandLine.arguments.dropFirst())))
