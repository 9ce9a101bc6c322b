// The words that the engine shares with clients in other processes belong to its own vocabulary.
@_exported import LarderVocabulary
