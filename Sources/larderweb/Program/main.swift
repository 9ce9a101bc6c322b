import Platform

exit(WebProgram.main(Array(CommandLine.arguments.dropFirst())))
