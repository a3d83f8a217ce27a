/// Writing, reading and removing checkpoints.
#include "gradus/train/checkpoint_directory.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include "gradus/base/input_file.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/json.h"

namespace gradus {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view prefix = "checkpoint-", list_suffix = ".json", title = "gradus checkpoint 1 crc32 ";

std::uint32_t checksum(const void* data, std::size_t bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, static_cast<const Bytef*>(data), bytes));
}
std::uint32_t checksum(const NamedArray& array) {
  return checksum(array.data->data(), static_cast<std::size_t>(bytes_of(array.spec)));
}

std::string padded(std::uint64_t number, std::size_t digits) {
  std::string out = std::to_string(number);
  return std::string(digits - std::min(digits, out.size()), '0') + out;
}

/// The directory, alone or with other readers, until the process lets it go or dies.
class DirectoryLock {
 public:
  DirectoryLock(const fs::path& directory, int kind)
      : descriptor_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    require<Unavailable>(descriptor_ >= 0, directory.string(),
                         ": the directory of checkpoints cannot be opened: ", std::generic_category().message(errno));
    int result = 0;
    do result = flock(descriptor_, kind);
    while (result != 0 && errno == EINTR);
    held_ = result == 0;
  }
  DirectoryLock(const DirectoryLock&) = delete;
  ~DirectoryLock() { close(descriptor_); }
  /// False on file systems without locks.
  bool held() const { return held_; }

 private:
  int descriptor_;
  bool held_ = false;
};

/// All files of one checkpoint: "checkpoint-000007-step-42".
struct Found {
  std::string stem;
  bool has_list = false;
  std::vector<fs::path> others;  // arrays, and what was not finished
};

/// The number in front of `rest`, which moves behind it.
std::optional<std::uint64_t> number_in(std::string_view& rest) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (problem != std::errc()) return {};
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

/// Oldest first, by their serial numbers.
std::map<std::uint64_t, Found> find_all(const fs::path& directory) {
  std::map<std::uint64_t, Found> all;
  std::error_code problem;
  for (fs::directory_iterator entry(directory, problem), end; !problem && entry != end; entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    std::string_view rest = name;
    if (!rest.starts_with(prefix)) continue;
    rest.remove_prefix(prefix.size());
    const auto serial = number_in(rest);
    if (!serial || !rest.starts_with("-step-")) continue;
    rest.remove_prefix(6);
    if (!number_in(rest) || !rest.starts_with(".")) continue;
    Found& found = all[*serial];
    if (found.stem.empty()) found.stem = name.substr(0, name.size() - rest.size());
    if (rest == list_suffix) found.has_list = true;
    else found.others.push_back(entry->path());
  }
  require<Unavailable>(!problem, directory.string(),
                       ": the directory of checkpoints cannot be read: ", problem.message());
  return all;
}

/// The list goes first: without it the rest is no checkpoint.
void remove(const fs::path& directory, const Found& found) {
  std::error_code ignored;
  fs::remove(directory / (found.stem + std::string(list_suffix)), ignored);
  for (const fs::path& file : found.others) fs::remove(file, ignored);
}

/// Removes the rest of a checkpoint that could not be written.
void remove_if_found(const fs::path& directory, std::uint64_t serial) noexcept {
  try {
    const auto all = find_all(directory);
    if (const auto own = all.find(serial); own != all.end()) remove(directory, own->second);
  } catch (const std::exception&) {}  // it has no list, so it is none; the next writer removes it
}

fs::path shard_of(const fs::path& directory, const std::string& stem, std::size_t shard) {
  return directory / text(stem, ".", shard, ".safetensors");
}

/// Arrays of at most `max_bytes` a file, in their order; a larger one has a file of its own.
std::vector<std::span<const NamedArray>> shards_of(std::span<const NamedArray> arrays, std::size_t max_bytes) {
  std::vector<std::span<const NamedArray>> shards;
  std::size_t begin = 0, bytes = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto own = static_cast<std::size_t>(bytes_of(arrays[i].spec));
    if (i > begin && bytes + own > max_bytes) {
      shards.push_back(arrays.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += own;
  }
  if (begin < arrays.size()) shards.push_back(arrays.subspan(begin));
  return shards;
}

void write_files(const CheckpointContents& contents, const fs::path& directory, const std::string& stem,
                 std::size_t max_shard_bytes) {
  Json arrays = Json::array();
  const auto shards = shards_of(contents.arrays, max_shard_bytes);
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    write_safetensors(shard_of(directory, stem, shard), shards[shard]);
    for (const NamedArray& array : shards[shard])
      arrays.push_back(
          {{"name", array.name}, {"shard", shard}, {"spec", text(array.spec)}, {"crc32", checksum(array)}});
  }
  Json all{{"numeric_contract", contents.contract},
           {"step", contents.step},
           {"epoch", contents.position.epoch},
           {"index", contents.position.index},
           {"random_state", contents.random_state},
           {"shards", shards.size()},
           {"arrays", std::move(arrays)}};
  if (contents.micro_shards) all["micro_shards"] = *contents.micro_shards;
  if (!contents.said.empty()) all["said"] = contents.said;
  if (contents.stream) all["stream"] = *contents.stream;
  const std::string body = all.dump(1) + '\n';
  AtomicFile list(directory / (stem + std::string(list_suffix)));
  list.write(text(title, checksum(body.data(), body.size()), '\n'));
  list.write(body);
  list.commit();
}

/// The reason why `bytes` bytes cannot be written to a new file; 0: none is known. The process's file size limit is
/// checked first, since the system sends a signal beyond it.
int room_problem(int file, std::int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(bytes)) return EFBIG;
  if (bytes > 0 && fallocate(file, 0, 0, bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR)
    return errno;
  return 0;
}

/// The part of a list that its checksum vouches for.
Json read_list(const fs::path& file) {
  const std::string all = read_text_file(file);
  require<DataError>(all.starts_with(title), file.string(), ": byte 0: this is no list of a checkpoint");
  std::string_view rest = std::string_view(all).substr(title.size());
  const auto wanted = number_in(rest);
  require<DataError>(wanted && rest.starts_with('\n'), file.string(), ": byte ", title.size(), ": no checksum");
  rest.remove_prefix(1);
  require<DataError>(checksum(rest.data(), rest.size()) == *wanted, file.string(), ": its checksum does not agree");
  return parse_json(rest, file.string());
}

CheckpointContents read_files(const fs::path& directory, const std::string& stem) {
  const fs::path file = directory / (stem + std::string(list_suffix));
  try {
    const Json list = read_list(file);
    CheckpointContents contents{
        .step = list.at("step").get<std::int64_t>(),
        .position = {list.at("epoch").get<std::int64_t>(), list.at("index").get<std::int64_t>()},
        .random_state = list.at("random_state").get<std::uint64_t>()};
    contents.contract = list.value("numeric_contract", 1);  // version 1 did not record it
    if (const auto found = list.find("micro_shards"); found != list.end())
      contents.micro_shards = found->get<std::int64_t>();
    if (const auto found = list.find("said"); found != list.end()) found->get_to(contents.said);
    if (const auto found = list.find("stream"); found != list.end()) contents.stream = found->get<std::int64_t>();
    const auto count = list.at("shards").get<std::size_t>();
    require<DataError>(count <= list.at("arrays").size(), file.string(), ": more files than arrays");
    std::vector<std::map<std::string, NamedArray>> shards(count);
    for (std::size_t shard = 0; shard < shards.size(); ++shard)
      for (NamedArray& array : read_safetensors(shard_of(directory, stem, shard))) {
        const std::string name = array.name;
        shards[shard].emplace(name, std::move(array));
      }
    for (const Json& entry : list.at("arrays")) {
      const auto name = entry.at("name").get<std::string>();
      auto& shard = shards.at(entry.at("shard").get<std::size_t>());
      const auto found = shard.find(name);
      require<DataError>(found != shard.end() && text(found->second.spec) == entry.at("spec").get<std::string>() &&
                             checksum(found->second) == entry.at("crc32").get<std::uint32_t>(),
                         shard_of(directory, stem, entry.at("shard").get<std::size_t>()).string(), ": array `", name,
                         "` is not what was written");
      contents.arrays.push_back(std::move(found->second));
      shard.erase(found);
    }
    return contents;
  } catch (const Json::exception& error) {
    throw DataError(text(file.string(), ": ", error.what()));
  } catch (const std::out_of_range&) { throw DataError(text(file.string(), ": a file of arrays is not in the list")); }
}

}  // namespace

bool make_checkpoint_directory(const fs::path& directory) {
  std::error_code problem;
  const bool is_made = fs::create_directories(directory, problem);
  require<Unavailable>(!problem, directory.string(),
                       ": the directory of checkpoints cannot be made: ", problem.message());
  return is_made;
}

void fail_to_write_checkpoints(const fs::path& directory, int problem, std::string why) {
  if (why.empty()) why = std::generic_category().message(problem);
  require<ResourceExhausted>(problem != ENOSPC && problem != EDQUOT && problem != EFBIG, directory.string(),
                             ": there is no room for a checkpoint: ", why, "; free some, or take another directory");
  throw Unavailable(text(directory.string(), ": checkpoints cannot be written there: ", why));
}

void CheckpointDirectory::require_writable(std::int64_t bytes) const {
  make_checkpoint_directory(options_.directory);
  std::string name = (options_.directory / "try-XXXXXX").string();
  const int file = mkostemp(name.data(), O_CLOEXEC);
  int problem = file < 0 ? errno : 0;
  if (file >= 0) {
    unlink(name.c_str());
    problem = room_problem(file, std::min<std::int64_t>(bytes, static_cast<std::int64_t>(options_.max_shard_bytes)));
    close(file);
  }
  if (problem == 0) return;
  fail_to_write_checkpoints(options_.directory, problem,
                            text(std::generic_category().message(problem), " (one has ", bytes, " bytes)"));
}

void CheckpointDirectory::write(const CheckpointContents& contents) const {
  const fs::path& directory = options_.directory;
  make_checkpoint_directory(directory);
  const DirectoryLock lock(directory, LOCK_EX);
  std::map<std::uint64_t, Found> known = find_all(directory);
  const std::uint64_t serial = known.empty() ? 1 : known.rbegin()->first + 1;
  if (lock.held())  // nobody else is writing: what has no list never will
    std::erase_if(known, [&](const auto& entry) {
      if (!entry.second.has_list) remove(directory, entry.second);
      return !entry.second.has_list;
    });
  const std::string stem = text(prefix, padded(serial, 6), "-step-", contents.step);
  try {
    write_files(contents, directory, stem, options_.max_shard_bytes);
  } catch (...) {
    remove_if_found(directory, serial);
    throw;
  }
  if (options_.max_to_keep == 0) return;
  const auto surplus = static_cast<std::ptrdiff_t>(known.size()) + 1 - options_.max_to_keep;
  auto oldest = known.begin();
  for (std::ptrdiff_t i = 0; i < surplus; ++i, ++oldest) remove(directory, oldest->second);
}

std::optional<CheckpointContents> CheckpointDirectory::read_newest(std::vector<std::string>& damaged) const {
  std::error_code problem;
  const bool exists = fs::exists(options_.directory, problem);
  require<Unavailable>(!problem, options_.directory.string(),
                       ": the directory of checkpoints cannot be read: ", problem.message());
  if (!exists) return {};
  const DirectoryLock lock(options_.directory, LOCK_SH);
  const auto all = find_all(options_.directory);
  for (auto newest = all.rbegin(); newest != all.rend(); ++newest) {
    if (!newest->second.has_list) continue;
    try {
      return read_files(options_.directory, newest->second.stem);
    } catch (const DataError& error) { damaged.push_back(error.what()); } catch (const Unavailable& error) {
      damaged.push_back(error.what());
    }
  }
  return {};
}

}  // namespace gradus
