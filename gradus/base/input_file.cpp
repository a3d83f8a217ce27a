#include "gradus/base/input_file.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include "gradus/base/error.h"

namespace gradus {
namespace {

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::string reason(int code) { return std::generic_category().message(code); }

/// Room for what a file says it holds.
template <class Bytes> void resize_for(const InputFile& file, Bytes& bytes, std::size_t size) {
  const auto fail = [&] { throw ResourceExhausted(text(file.name(), ": no memory for ", size, " bytes of it")); };
  try {
    bytes.resize(size);
  } catch (const std::bad_alloc&) { fail(); } catch (const std::length_error&) {
    fail();
  }
}

/// To the end, wherever that is: a file may grow, and those of /proc do not know their size.
template <class Bytes> Bytes read_all(const std::filesystem::path& path) {
  InputFile file(path);
  Bytes bytes;
  resize_for(file, bytes, static_cast<std::size_t>(file.size()));
  std::size_t filled = 0;
  for (;;) {
    filled += file.read(std::as_writable_bytes(std::span(bytes).subspan(filled)));
    if (filled < bytes.size()) break;
    std::byte next[4096];
    const std::size_t more = file.read(next);
    if (more == 0) break;
    resize_for(file, bytes, filled + std::max(filled, more));
    std::ranges::copy(std::span(next).first(more),
                      std::as_writable_bytes(std::span(bytes)).begin() + static_cast<std::ptrdiff_t>(filled));
    filled += more;
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& file)
    : name_(file.string()), descriptor_(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  require<Unavailable>(descriptor_ >= 0, name_, ": cannot be opened: ", reason(errno));
  struct stat status{};
  const int problem = fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (problem == 0 && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  close(descriptor_);
  require<Unavailable>(problem == 0, name_, ": cannot be opened: ", reason(problem));
  throw Unavailable(text(name_, ": is ", kind_of(status.st_mode), "; expected a regular file"));
}

InputFile::~InputFile() { close(descriptor_); }

std::size_t InputFile::read(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count = ::read(descriptor_, out.data() + filled, out.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    require<Unavailable>(count >= 0, name_, ": cannot be read at byte ", position_, ": ", reason(errno));
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
    position_ += count;
  }
  return filled;
}

void InputFile::seek(std::int64_t position) {
  require<Unavailable>(lseek(descriptor_, position, SEEK_SET) == position, name_, ": cannot be read at byte ", position,
                       ": ", reason(errno));
  position_ = position;
}

/// The file lies at the begin of ordinary memory, whose rest is behind it: no page of the file has to be there for
/// that.
std::shared_ptr<std::byte> InputFile::map() const {
  constexpr std::size_t behind = 64;
  const auto bytes = static_cast<std::size_t>(size_), all = bytes + behind;
  constexpr int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_NORESERVE;
  void* const memory = mmap(nullptr, all, access, kind | MAP_ANONYMOUS, -1, 0);
  require<ResourceExhausted>(memory != MAP_FAILED, name_, ": no address space for ", size_, " bytes of it");
  std::shared_ptr<std::byte> mapped(static_cast<std::byte*>(memory), [all](std::byte* begin) { munmap(begin, all); });
  require<Unavailable>(mmap(memory, bytes, access, kind | MAP_FIXED, descriptor_, 0) != MAP_FAILED, name_,
                       ": cannot be mapped into memory: ", reason(errno));
  return mapped;
}

std::vector<std::byte> read_whole_file(const std::filesystem::path& file) {
  return read_all<std::vector<std::byte>>(file);
}
std::string read_text_file(const std::filesystem::path& file) { return read_all<std::string>(file); }

std::string read_part_of_file(const std::filesystem::path& path, std::int64_t position, std::int64_t bytes) {
  InputFile file(path);
  std::string part;
  resize_for(file, part, static_cast<std::size_t>(bytes));
  file.seek(position);
  require<Unavailable>(file.read(std::as_writable_bytes(std::span(part))) == part.size(), file.name(), ": has ",
                       file.size(), " bytes, ", bytes, " from byte ", position, " on are needed");
  return part;
}

}  // namespace gradus
