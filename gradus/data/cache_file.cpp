#include "gradus/data/cache_file.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <system_error>
#include <thread>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

constexpr std::array<char, 8> magic{'G', 'R', 'A', 'D', 'U', 'S', 'C', '1'};
constexpr std::uint64_t record_mark = 0x44524f4345524347;  // "GCRECORD"
constexpr std::int64_t no_element = -1;                    // the record that says how many there are

struct FileHeader {
  std::array<char, 8> kind = magic;
  std::uint64_t fingerprint = 0, checksum = 0;
};
struct RecordHeader {
  std::uint64_t mark = record_mark;
  std::int64_t index = 0, bytes = 0;
  std::uint64_t payload_checksum = 0, checksum = 0;
};

template <class Header> std::span<const std::byte> bytes_before_checksum(const Header& header) {
  return std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum));
}
template <class Header> Header sealed(Header header) {
  header.checksum = hash_of_bytes(bytes_before_checksum(header));
  return header;
}
template <class Header> bool is_whole(const Header& header) {
  return header.checksum == hash_of_bytes(bytes_before_checksum(header));
}

/// A file of another origin, or of other stages, is not ours to overwrite. False: it is empty, or its making was cut
/// off.
bool check_header(const std::string& file, std::span<const std::byte> bytes, std::uint64_t fingerprint) {
  const FileHeader expected = sealed(FileHeader{.fingerprint = fingerprint});
  if (bytes.size() < sizeof expected && std::memcmp(bytes.data(), &expected, bytes.size()) == 0) return false;
  FileHeader found;
  std::memcpy(&found, bytes.data(), std::min(bytes.size(), sizeof found));
  require<DataError>(bytes.size() >= sizeof found && found.kind == magic && is_whole(found), "cache: ", file,
                     ": byte 0: this file is no cache; name another one");
  require<DataError>(found.fingerprint == fingerprint, "cache: ", file,
                     " is stale: it was made from other data or by other stages; delete it, or name another file");
  return true;
}

std::string reason(int code) { return std::generic_category().message(code); }

}  // namespace

void CacheFile::check(const std::filesystem::path& file, std::uint64_t fingerprint) {
  // Without waiting: the file may be a pipe without a writer.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return;
  struct stat status{};
  const bool is_regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (!is_regular) close(descriptor);
  require<Unavailable>(is_regular, "cache: ", file.string(), ": is no regular file");
  std::array<std::byte, sizeof(FileHeader)> bytes;
  const ssize_t count = pread(descriptor, bytes.data(), bytes.size(), 0);
  close(descriptor);
  require<Unavailable>(count >= 0, "cache: ", file.string(), ": cannot be read; is it a file?");
  check_header(file.string(), std::span(bytes).first(static_cast<std::size_t>(count)), fingerprint);
}

std::shared_ptr<CacheFile> CacheFile::open(const std::filesystem::path& file, std::uint64_t fingerprint,
                                           const std::vector<Spec>& specs, std::optional<std::int64_t> count) {
  static std::mutex guard;
  static std::map<std::pair<std::filesystem::path, std::uint64_t>, std::weak_ptr<CacheFile>> opened;
  const std::lock_guard lock(guard);
  std::error_code none;
  auto& known = opened[{std::filesystem::weakly_canonical(file, none), fingerprint}];
  struct stat on_disk{}, held{};
  if (auto existing = known.lock())  // unless it was deleted or replaced meanwhile
    if (stat(file.c_str(), &on_disk) == 0 && fstat(existing->descriptor_, &held) == 0 &&
        on_disk.st_ino == held.st_ino && on_disk.st_dev == held.st_dev)
      return existing;
  std::shared_ptr<CacheFile> made(new CacheFile(file, fingerprint, specs, count));
  known = made;
  return made;
}

CacheFile::CacheFile(std::filesystem::path file, std::uint64_t fingerprint, std::vector<Spec> specs,
                     std::optional<std::int64_t> count)
    : file_(std::move(file)), fingerprint_(fingerprint), specs_(std::move(specs)), count_(count) {
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor_ < 0 && (errno == EACCES || errno == EROFS))
    descriptor_ = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  require<Unavailable>(descriptor_ >= 0, "cache: ", file_.string(), ": cannot be written: ", reason(errno));
  try {
    if (try_lock(false)) {
      scan();
      flock(descriptor_, LOCK_UN);
    }
    if (!is_complete()) lock_to_fill();
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

CacheFile::~CacheFile() { close(descriptor_); }

bool CacheFile::try_lock(bool alone) const { return flock(descriptor_, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0; }

/// Other processes look at a file for moments only, unless they fill it.
void CacheFile::lock_to_fill() {
  for (int tries = 0; !try_lock(true); ++tries) {
    require<Unavailable>(tries < 200, "cache: ", file_.string(),
                         ": another process is filling it; wait until it is done, or name another file");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  scan();
  if (end_ == 0) {
    const FileHeader header = sealed(FileHeader{.fingerprint = fingerprint_});
    write_at(0, std::as_bytes(std::span(&header, 1)));
    end_ = sizeof header;
  }
  if (ftruncate(descriptor_, end_) != 0) fail_write();
  unlock_if_complete();
}

std::size_t CacheFile::read_at(std::int64_t place, std::span<std::byte> out) const {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count =
        pread(descriptor_, out.data() + filled, out.size() - filled, place + static_cast<std::int64_t>(filled));
    if (count < 0 && errno == EINTR) continue;
    require<Unavailable>(count >= 0, "cache: ", file_.string(), ": cannot be read: ", reason(errno));
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

/// Finds the elements, up to the first record that is not whole. The last one's contents are compared, too: a process
/// may have been killed while it wrote them.
void CacheFile::scan() {
  places_.clear();
  end_ = 0;
  FileHeader header;
  const std::size_t got = read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  if (!check_header(file_.string(), std::as_bytes(std::span(&header, 1)).first(got), fingerprint_)) return;
  struct stat status{};
  require<Unavailable>(fstat(descriptor_, &status) == 0, "cache: ", file_.string(), ": cannot be read");
  end_ = sizeof header;
  RecordHeader record;
  std::optional<std::int64_t> last;  // the index of the last element
  while (read_at(end_, std::as_writable_bytes(std::span(&record, 1))) == sizeof record) {
    const std::int64_t begin = end_ + static_cast<std::int64_t>(sizeof record);
    if (record.mark != record_mark || !is_whole(record) || record.bytes < 0 || record.bytes > status.st_size - begin)
      break;
    if (record.index == no_element) {
      std::int64_t count = 0;
      if (read_at(begin, std::as_writable_bytes(std::span(&count, 1))) == sizeof count) count_ = count;
    } else {
      places_[record.index] = {begin, record.bytes, record.payload_checksum};
      last = record.index;
    }
    end_ = begin + record.bytes;
  }
  if (!last) return;
  const Place& place = places_[*last];
  std::vector<std::byte> payload(static_cast<std::size_t>(place.bytes));
  if (place.begin + place.bytes != end_ ||
      (read_at(place.begin, payload) == payload.size() && hash_of_bytes(payload) == place.checksum))
    return;
  end_ = place.begin - static_cast<std::int64_t>(sizeof record);
  places_.erase(*last);
}

bool CacheFile::is_complete() const { return end_ > 0 && count_ && std::ssize(places_) >= *count_; }

void CacheFile::unlock_if_complete() {
  if (is_complete()) flock(descriptor_, LOCK_UN);
}

bool CacheFile::holds(std::int64_t index) const {
  const std::lock_guard lock(guard_);
  return places_.contains(index);
}

std::optional<std::int64_t> CacheFile::count() const {
  const std::lock_guard lock(guard_);
  return count_;
}

void CacheFile::fail_write() const {
  const int code = errno;
  const std::string message = text("cache: ", file_.string(), ": cannot be written: ", reason(code));
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) throw ResourceExhausted(message);
  throw Unavailable(message);
}

void CacheFile::write_at(std::int64_t place, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(descriptor_, bytes.data(), bytes.size(), place);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_write();
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    place += count;
  }
}

/// One write, so that what a killed process leaves is a part of the last record at most.
void CacheFile::write_record(std::int64_t index, std::span<const std::byte> payload) {
  const RecordHeader header =
      sealed(RecordHeader{.index = index, .bytes = std::ssize(payload), .payload_checksum = hash_of_bytes(payload)});
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> record(head.begin(), head.end());
  record.insert(record.end(), payload.begin(), payload.end());
  const std::lock_guard lock(guard_);
  require<Unavailable>(end_ > 0, "cache: ", file_.string(),
                       ": cannot be written: what an earlier failure left there could not be removed; start again");
  try {
    write_at(end_, record);
  } catch (...) {
    if (ftruncate(descriptor_, end_) != 0) end_ = 0;  // later records would stand behind a broken one
    throw;
  }
  const std::int64_t begin = end_ + static_cast<std::int64_t>(sizeof header);
  if (index != no_element) places_[index] = {begin, std::ssize(payload), header.payload_checksum};
  end_ = begin + std::ssize(payload);
}

void CacheFile::append(std::int64_t index, std::span<const Tensor> element) {
  std::vector<std::byte> payload;
  const auto add = [&](const void* bytes, std::size_t count) {
    const auto* begin = static_cast<const std::byte*>(bytes);
    payload.insert(payload.end(), begin, begin + count);
  };
  for (const Tensor& field : element) {
    const std::int64_t rank = field.shape().rank();
    add(&rank, sizeof rank);
    add(field.shape().begin(), static_cast<std::size_t>(rank) * sizeof rank);
  }
  for (const Tensor& field : element)
    if (field.bytes() > 0) add(field.host(), field.bytes());
  write_record(index, payload);
  const std::lock_guard lock(guard_);
  unlock_if_complete();
}

void CacheFile::finish(std::int64_t count) {
  write_record(no_element, std::as_bytes(std::span(&count, 1)));
  const std::lock_guard lock(guard_);
  count_ = count;
  unlock_if_complete();
}

Tensors CacheFile::read(std::int64_t index) const {
  Place place;
  {
    const std::lock_guard lock(guard_);
    place = places_.at(index);
  }
  std::vector<std::byte> payload(static_cast<std::size_t>(place.bytes));
  const std::size_t got = read_at(place.begin, payload);
  require<DataError>(got == payload.size() && hash_of_bytes(payload) == place.checksum, "cache: ", file_.string(),
                     ": byte ", place.begin, ": element ", index, " is damaged; delete the file");
  return parse(payload, place);
}

Tensors CacheFile::parse(std::span<const std::byte> payload, const Place& place) const {
  const auto take = [&](void* out, std::size_t count) {
    require<DataError>(count <= payload.size(), "cache: ", file_.string(), ": byte ", place.begin,
                       ": an element is too short; delete the file");
    if (count > 0) std::memcpy(out, payload.data(), count);
    payload = payload.subspan(count);
  };
  std::vector<Spec> specs = specs_;
  for (Spec& spec : specs) {
    std::int64_t rank = 0;
    take(&rank, sizeof rank);
    require<DataError>(rank == spec.shape.rank(), "cache: ", file_.string(), ": byte ", place.begin,
                       ": an element has another rank; delete the file");
    for (int axis = 0; axis < rank; ++axis) {
      std::int64_t size = 0;
      take(&size, sizeof size);
      require<DataError>(size >= 0, "cache: ", file_.string(), ": byte ", place.begin, ": a size is negative");
      spec.shape.set(axis, size);
    }
  }
  Tensors element;
  for (const Spec& spec : specs) {
    const std::int64_t bytes = bytes_of(spec);
    require<DataError>(bytes <= std::ssize(payload), "cache: ", file_.string(), ": byte ", place.begin,
                       ": an element is too short; delete the file");
    Ref<Buffer> buffer = Buffer::allocate(bytes, "element of a cache");
    take(buffer->data(), static_cast<std::size_t>(bytes));
    element.push_back(Tensor::of_buffer(spec, std::move(buffer)));
  }
  return element;
}

}  // namespace gradus
