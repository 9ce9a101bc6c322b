import Platform

exit(Bench.main(Array(CommandLine.arguments.dropFirst())))
