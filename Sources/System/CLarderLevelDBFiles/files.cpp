#include "cleveldbfiles.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <leveldb/c.h>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/options.h>
#include <leveldb/slice.h>
#include <leveldb/status.h>

namespace {

using leveldb::Slice;
using leveldb::Status;

/// The state of this thread's probe: see larder_leveldb_lacks().
struct Probe {
  bool runs = false;
  /// Whether a filter could not exclude the key.
  bool isUndecided = false;
};

thread_local Probe probe;

/// See larder_leveldb_refuse_reads().
thread_local bool refuses_reads = false;

/// The error for a probe that would have to read a file. Not `NotFound`, which LevelDB treats as an absent key.
Status Refusal() { return Status::IOError("a probe reads no file"); }

/// Reads `count` bytes with a function that may return fewer, until all are read or the file ends. If the first call
/// returns all bytes, as with a memory map, nothing is copied.
template <typename Read>
Status ReadAll(size_t count, Slice *result, char *scratch, Read read) {
  Status status = read(0, count, result, scratch);
  if (!status.ok() || result->size() == count || result->empty()) return status;
  if (result->data() != scratch) std::memmove(scratch, result->data(), result->size());
  size_t got = result->size();
  while (got < count) {
    Slice part;
    status = read(got, count - got, &part, scratch + got);
    if (!status.ok() || part.empty()) break;
    if (part.data() != scratch + got) std::memmove(scratch + got, part.data(), part.size());
    got += part.size();
  }
  *result = Slice(scratch, status.ok() ? got : 0);
  return status;
}

class WholeSequentialFile final : public leveldb::SequentialFile {
public:
  explicit WholeSequentialFile(leveldb::SequentialFile *file) : file_(file) {}
  ~WholeSequentialFile() override { delete file_; }

  Status Read(size_t count, Slice *result, char *scratch) override {
    return ReadAll(count, result, scratch, [this](size_t, size_t rest, Slice *part, char *space) {
      return file_->Read(rest, part, space);
    });
  }
  Status Skip(uint64_t count) override { return file_->Skip(count); }

private:
  leveldb::SequentialFile *const file_;
};

class WholeRandomAccessFile final : public leveldb::RandomAccessFile {
public:
  explicit WholeRandomAccessFile(leveldb::RandomAccessFile *file) : file_(file) {}
  ~WholeRandomAccessFile() override { delete file_; }

  Status Read(uint64_t offset, size_t count, Slice *result, char *scratch) const override {
    if (probe.runs || refuses_reads) return Refusal();
    return ReadAll(count, result, scratch, [this, offset](size_t got, size_t rest, Slice *part, char *space) {
      return file_->Read(offset + got, rest, part, space);
    });
  }

private:
  leveldb::RandomAccessFile *const file_;
};

/// A table that is mapped into memory. LevelDB's own environment maps 1,000 tables and reads the others, for which LevelDB
/// then copies filters and indexes, 40 KB of each table, and keeps a descriptor.
class MappedFile final : public leveldb::RandomAccessFile {
public:
  /// Returns null if the file cannot be opened or mapped, or if too many are mapped.
  static MappedFile *Open(const std::string &name) {
    if (count_.fetch_add(1) < count_max_) {
      const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
      struct stat status = {};
      void *start = MAP_FAILED;
      // The system refuses to map an empty file.
      if (file >= 0 && fstat(file, &status) == 0) {
        start = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, file, 0);
      }
      if (file >= 0) close(file);
      if (start != MAP_FAILED) return new MappedFile(name, static_cast<char *>(start), static_cast<size_t>(status.st_size));
    }
    count_.fetch_sub(1);
    return nullptr;
  }
  ~MappedFile() override {
    munmap(start_, length_);
    count_.fetch_sub(1);
  }

  Status Read(uint64_t offset, size_t count, Slice *result, char *) const override {
    if (probe.runs || refuses_reads) return Refusal();
    const bool is_inside = offset <= length_ && count <= length_ - offset;
    *result = is_inside ? Slice(start_ + offset, count) : Slice();
    return is_inside ? Status::OK() : Status::IOError(name_, std::strerror(EINVAL));
  }

private:
  MappedFile(const std::string &name, char *start, size_t length) : name_(name), start_(start), length_(length) {}

  /// Less than half of the mappings that Linux allows a process by default.
  static constexpr int count_max_ = 30000;
  static std::atomic<int> count_;

  const std::string name_;
  char *const start_;
  const size_t length_;
};

std::atomic<int> MappedFile::count_{0};

/// See larder_leveldb_on_merge().
std::atomic<larder_leveldb_merge_hook> merge_hook{nullptr};

/// Whether this is LevelDB's thread for merges.
thread_local bool is_merging = false;
/// The directory of the database for which the hook was called with `begins` 1 and not yet with 0; otherwise empty.
thread_local std::string installing;

void BeginInstalling(const std::string &directory) {
  const larder_leveldb_merge_hook hook = merge_hook.load();
  if (!is_merging || hook == nullptr || !installing.empty()) return;
  installing = directory;
  hook(installing.c_str(), 1);
}

void EndInstalling() {
  if (installing.empty()) return;
  const std::string directory = installing;
  installing.clear();
  if (const larder_leveldb_merge_hook hook = merge_hook.load()) hook(directory.c_str(), 0);
}

/// A manifest. When an edit is synced, the new tables of a merge replace the tables that were merged.
///
/// An edit must not be in the file before the names of its tables are durable. LevelDB's own class syncs the directory
/// in Sync(), but has already written the edit in Flush(). So the edit may reach the disk first, and a power failure
/// then leaves a manifest with missing tables. This class keeps edits in memory until Sync().
class ManifestFile final : public leveldb::WritableFile {
public:
  ManifestFile(leveldb::WritableFile *file, std::string directory) : file_(file), directory_(std::move(directory)) {}
  ~ManifestFile() override { delete file_; }

  Status Append(const Slice &data) override {
    waiting_.append(data.data(), data.size());
    return Status::OK();
  }
  Status Flush() override { return Status::OK(); }
  Status Sync() override {
    Status status = WriteAndSync();
    if (status.ok()) BeginInstalling(directory_);
    return status;
  }
  Status Close() override {
    Status status = waiting_.empty() ? Status::OK() : WriteAndSync();
    Status closed = file_->Close();
    return status.ok() ? closed : status;
  }

private:
  /// The number of bytes that LevelDB's file keeps in memory until Sync() has synced the directory.
  static constexpr size_t kept_ = 65536;

  Status WriteAndSync() {
    Status status;
    // This syncs the directory, and the file without the new edits.
    if (waiting_.size() > kept_) status = file_->Sync();
    if (status.ok()) status = file_->Append(waiting_);
    // Drop the edits even if writing has failed: LevelDB writes no more edits after that.
    waiting_.clear();
    return status.ok() ? file_->Sync() : status;
  }

  leveldb::WritableFile *const file_;
  const std::string directory_;
  std::string waiting_;
};

/// Background work of LevelDB.
struct Work {
  void (*function)(void *);
  void *argument;
};

void RunWork(void *pointer) {
  Work *const work = static_cast<Work *>(pointer);
  is_merging = true;
  work->function(work->argument);
  // In case the work ended without listing the directory: a table was only moved, or there was an error.
  EndInstalling();
  delete work;
}

class LarderEnvironment final : public leveldb::EnvWrapper {
public:
  explicit LarderEnvironment(leveldb::Env *environment) : leveldb::EnvWrapper(environment) {}

  void Schedule(void (*function)(void *), void *argument) override {
    target()->Schedule(RunWork, new Work{function, argument});
  }
  Status NewWritableFile(const std::string &name, leveldb::WritableFile **result) override {
    Status status = target()->NewWritableFile(name, result);
    const size_t slash = name.rfind("/MANIFEST-");
    if (status.ok() && slash != std::string::npos) *result = new ManifestFile(*result, name.substr(0, slash));
    return status;
  }
  /// LevelDB lists a directory after it has found out which files are in use, to remove the others.
  Status GetChildren(const std::string &directory, std::vector<std::string> *result) override {
    EndInstalling();
    return target()->GetChildren(directory, result);
  }

  Status NewSequentialFile(const std::string &name, leveldb::SequentialFile **result) override {
    Status status = target()->NewSequentialFile(name, result);
    if (status.ok()) *result = new WholeSequentialFile(*result);
    return status;
  }
  Status NewRandomAccessFile(const std::string &name, leveldb::RandomAccessFile **result) override {
    if (probe.runs || refuses_reads) return Refusal();
    *result = MappedFile::Open(name);
    if (*result != nullptr) return Status::OK();
    Status status = target()->NewRandomAccessFile(name, result);
    if (status.ok()) *result = new WholeRandomAccessFile(*result);
    return status;
  }
};

/// LevelDB's C interface accepts only its own kind of environment, a structure that begins with a pointer to the C++ one.
/// This creates such a structure and replaces the pointer.
leveldb_env_t *MakeEnvironment() {
  leveldb::Env *const standard = leveldb::Env::Default();
  leveldb_env_t *const environment = leveldb_create_default_env();
  leveldb::Env *first;
  std::memcpy(&first, environment, sizeof first);
  if (first != standard) {
    leveldb_env_destroy(environment);
    return nullptr;
  }
  leveldb::Env *const whole = new LarderEnvironment(standard);
  std::memcpy(static_cast<void *>(environment), &whole, sizeof whole);
  return environment;
}

/// LevelDB's own cache, except for blocks that are longer than one of its shards. LevelDB would keep such a block,
/// however long, until it needs the space for another one. This cache frees it when its reader releases it.
class BoundedCache final : public leveldb::Cache {
public:
  explicit BoundedCache(size_t capacity) : cache_(leveldb::NewLRUCache(capacity)), longest_(capacity / shards_) {}
  ~BoundedCache() override { delete cache_; }

  Handle *Insert(const Slice &key, void *value, size_t charge, void (*deleter)(const Slice &, void *)) override {
    if (charge <= longest_) return cache_->Insert(key, value, charge, deleter);
    return Tagged(new Passing{key.ToString(), value, deleter});
  }
  Handle *Lookup(const Slice &key) override { return cache_->Lookup(key); }
  void Release(Handle *handle) override {
    Passing *const passing = Untagged(handle);
    if (passing == nullptr) return cache_->Release(handle);
    passing->deleter(passing->key, passing->value);
    delete passing;
  }
  void *Value(Handle *handle) override {
    Passing *const passing = Untagged(handle);
    return passing == nullptr ? cache_->Value(handle) : passing->value;
  }
  void Erase(const Slice &key) override { cache_->Erase(key); }
  uint64_t NewId() override { return cache_->NewId(); }
  void Prune() override { cache_->Prune(); }
  size_t TotalCharge() const override { return cache_->TotalCharge(); }

private:
  /// A block that is not kept.
  struct Passing {
    std::string key;
    void *value;
    void (*deleter)(const Slice &, void *);
  };

  /// The number of shards of LevelDB's cache.
  static constexpr size_t shards_ = 16;

  /// Handles of LevelDB's cache are aligned pointers, so the lowest bit can mark the handles of blocks that are not kept.
  static Handle *Tagged(Passing *passing) { return reinterpret_cast<Handle *>(reinterpret_cast<uintptr_t>(passing) | 1); }
  static Passing *Untagged(Handle *handle) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(handle);
    return (bits & 1) == 0 ? nullptr : reinterpret_cast<Passing *>(bits & ~static_cast<uintptr_t>(1));
  }

  leveldb::Cache *const cache_;
  const size_t longest_;
};

/// The cache in a structure of the C interface, which begins with a pointer to it, as the environment's structure does.
leveldb::Cache *CacheIn(const leveldb_cache_t *structure) {
  leveldb::Cache *cache;
  std::memcpy(&cache, structure, sizeof cache);
  return cache;
}

/// The space for the values that this thread reads.
thread_local std::string value_space;

/// The memory that a thread keeps for values, in bytes.
constexpr size_t value_space_max = 65536;

/// Reads a value into `value_space`. The structures of the C interface begin with the database, and with the options.
Status Get(const leveldb_t *database, const leveldb_readoptions_t *options, const Slice &key) {
  leveldb::DB *rep;
  std::memcpy(&rep, database, sizeof rep);
  return rep->Get(*reinterpret_cast<const leveldb::ReadOptions *>(options), key, &value_space);
}

void FreeLongValue() {
  if (value_space.capacity() > value_space_max) std::string().swap(value_space);
}

// LevelDB's own Bloom filter, except that it excludes every key during a probe, which then continues with the next table.
// These are the functions of the C interface; `state` is the filter.

const leveldb::FilterPolicy *Filter(void *state) { return static_cast<const leveldb::FilterPolicy *>(state); }

void DestroyFilter(void *state) { delete Filter(state); }

/// LevelDB's name of the filter, because the filters in the files are the same.
const char *FilterName(void *) {
  static const leveldb::FilterPolicy *const policy = leveldb::NewBloomFilterPolicy(10);
  return policy->Name();
}

char *CreateFilter(void *state, const char *const *keys, const size_t *lengths, int count, size_t *byte_count) {
  std::vector<Slice> slices;
  slices.reserve(count);
  for (int index = 0; index < count; index++) slices.emplace_back(keys[index], lengths[index]);
  std::string bytes;
  Filter(state)->CreateFilter(slices.data(), count, &bytes);
  *byte_count = bytes.size();
  char *const copy = static_cast<char *>(std::malloc(bytes.size() + 1));
  if (copy == nullptr) std::abort();
  std::memcpy(copy, bytes.data(), bytes.size());
  return copy;
}

uint8_t MayMatch(void *state, const char *key, size_t key_length, const char *filter, size_t filter_length) {
  const bool may = Filter(state)->KeyMayMatch(Slice(key, key_length), Slice(filter, filter_length));
  if (!probe.runs || !may) return may;
  probe.isUndecided = true;
  return false;
}

} // namespace

leveldb_filterpolicy_t *larder_leveldb_bloom_filter(int bits_per_key) {
  void *const filter = const_cast<leveldb::FilterPolicy *>(leveldb::NewBloomFilterPolicy(bits_per_key));
  return leveldb_filterpolicy_create(filter, DestroyFilter, CreateFilter, MayMatch, FilterName);
}

char *larder_leveldb_get(
    leveldb_t *database, const leveldb_readoptions_t *options, const char *key, size_t key_length, size_t *value_length,
    char **error) {
  // If LevelDB's environment has an unknown structure, its databases may have one too.
  if (larder_leveldb_environment() == nullptr) return leveldb_get(database, options, key, key_length, value_length, error);
  const Status status = Get(database, options, Slice(key, key_length));
  if (!status.ok()) {
    *value_length = 0;
    if (!status.IsNotFound()) *error = strdup(status.ToString().c_str());
    return nullptr;
  }
  *value_length = value_space.size();
  char *const copy = static_cast<char *>(std::malloc(value_space.size() + 1));
  if (copy == nullptr) std::abort();
  std::memcpy(copy, value_space.data(), value_space.size());
  FreeLongValue();
  return copy;
}

int larder_leveldb_lacks(leveldb_t *database, const leveldb_readoptions_t *options, const char *key, size_t key_length) {
  probe = {true, false};
  const bool lacks = Get(database, options, Slice(key, key_length)).IsNotFound() && !probe.isUndecided;
  probe = {};
  FreeLongValue();
  return lacks;
}

void larder_leveldb_refuse_reads(int refuses) { refuses_reads = refuses != 0; }

void larder_leveldb_on_merge(larder_leveldb_merge_hook hook) { merge_hook.store(hook); }

leveldb_env_t *larder_leveldb_environment(void) {
  static leveldb_env_t *const environment = MakeEnvironment();
  return environment;
}

leveldb_cache_t *larder_leveldb_cache(size_t capacity) {
  leveldb_cache_t *const structure = leveldb_cache_create_lru(capacity);
  // If LevelDB's environment has an unknown structure, its cache may have one too.
  if (larder_leveldb_environment() == nullptr) return structure;
  delete CacheIn(structure);
  leveldb::Cache *const bounded = new BoundedCache(capacity);
  std::memcpy(static_cast<void *>(structure), &bounded, sizeof bounded);
  return structure;
}

size_t larder_leveldb_cache_bytes(const leveldb_cache_t *cache) {
  return larder_leveldb_environment() == nullptr ? 0 : CacheIn(cache)->TotalCharge();
}
