// What larderd needs for a server, too: its log, who manages it, who may use its socket.
@_exported import LarderServices
