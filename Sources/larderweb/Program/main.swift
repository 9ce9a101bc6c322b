import LarderPlatform

exit(WebProgram.main(Array(CommandLine.arguments.dropFirst())))
