// The types that the engine shares with clients in other processes are part of its own interface.
@_exported import LarderVocabulary
