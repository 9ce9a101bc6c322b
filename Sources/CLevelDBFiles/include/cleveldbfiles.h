#ifndef LARDER_LEVELDB_FILES_H
#define LARDER_LEVELDB_FILES_H

#ifdef __cplusplus
extern "C" {
#endif

struct leveldb_env_t;

/// LevelDB's default environment, but for reads that return less than there is, as POSIX allows: they go on until all of
/// it was read. LevelDB itself takes the first short read of a log or a manifest for its end, and deletes the file.
///
/// One for the whole process, never to be destroyed; null if this LevelDB's C environment is not the structure that is known
/// here: then its own is to be used. Thread-safe.
struct leveldb_env_t *larder_leveldb_environment(void);

#ifdef __cplusplus
}
#endif

#endif
