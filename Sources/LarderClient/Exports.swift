// The words that clients share with the engine belong to their own vocabulary.
@_exported import LarderVocabulary
