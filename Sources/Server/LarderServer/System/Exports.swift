// Makes the module LarderServices available to users of this module: the log, the service manager, and socket access.
@_exported import LarderServices
