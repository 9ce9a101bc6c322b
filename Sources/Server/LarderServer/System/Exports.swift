// Exports the parts of larderd that a server needs too: its log, its service manager, the access to its socket.
@_exported import LarderServices
