// The engine shares types with clients in other processes. These types are part of the engine's own interface.
@_exported import LarderVocabulary
