#include "gradus/formats/byte_stream.h"
#include <algorithm>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"

namespace gradus {

std::size_t ByteStream::read(std::span<std::byte> out) {
  std::size_t filled = std::min(out.size(), peeked_.size());
  std::copy_n(peeked_.begin(), filled, out.begin());
  peeked_.erase(peeked_.begin(), peeked_.begin() + static_cast<std::ptrdiff_t>(filled));
  while (filled < out.size()) {
    const std::size_t count = read_some(out.subspan(filled));
    if (count == 0) break;
    filled += count;
  }
  position_ += static_cast<std::int64_t>(filled);
  return filled;
}

std::span<const std::byte> ByteStream::peek(std::size_t count) {
  while (peeked_.size() < count) {
    std::byte next[16];
    const std::size_t got = read_some(std::span(next).first(std::min(sizeof next, count - peeked_.size())));
    if (got == 0) break;
    peeked_.insert(peeked_.end(), next, next + got);
  }
  return std::span(peeked_).first(std::min(count, peeked_.size()));
}

std::string ByteStream::place_of(std::int64_t position) const { return text("byte ", position); }

namespace {

class FileStream : public ByteStream {
 public:
  explicit FileStream(const std::filesystem::path& file) : ByteStream(file.string()), file_(file) {}

  std::int64_t likely_bytes() const override { return std::max(std::int64_t{0}, file_.size() - position()); }

 protected:
  std::size_t read_some(std::span<std::byte> out) override { return file_.read(out); }

 private:
  InputFile file_;
};

class MemoryStream : public ByteStream {
 public:
  MemoryStream(std::span<const std::byte> bytes, std::string name) : ByteStream(std::move(name)), rest_(bytes) {}
  std::int64_t likely_bytes() const override { return static_cast<std::int64_t>(rest_.size()); }

 protected:
  std::size_t read_some(std::span<std::byte> out) override {
    const std::size_t count = std::min(out.size(), rest_.size());
    std::copy_n(rest_.begin(), count, out.begin());
    rest_ = rest_.subspan(count);
    return count;
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

/// Grows with what really comes, and keeps no more than twice that.
std::vector<std::byte> read_to_end(ByteStream& stream) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(stream.likely_bytes()) + 4096);
  for (std::size_t filled = 0;;) {
    const std::size_t count = stream.read(std::span(bytes).subspan(filled));
    filled += count;
    if (filled < bytes.size()) {
      bytes.resize(filled);
      if (bytes.capacity() / 2 > filled) bytes.shrink_to_fit();
      return bytes;
    }
    bytes.resize(2 * filled);
  }
}

std::unique_ptr<ByteStream> open_file(const std::filesystem::path& file) { return std::make_unique<FileStream>(file); }
std::unique_ptr<ByteStream> stream_of(std::span<const std::byte> bytes, std::string name) {
  return std::make_unique<MemoryStream>(bytes, std::move(name));
}

}  // namespace gradus
