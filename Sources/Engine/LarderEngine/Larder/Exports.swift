// Re-export the types that the engine shares with clients in other processes, because they are part of the engine's
// interface.
@_exported import LarderVocabulary
