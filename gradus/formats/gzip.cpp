#include "gradus/formats/gzip.h"
#include <zlib.h>
#include <algorithm>
#include <array>
#include <limits>
#include "gradus/base/error.h"

namespace gradus {
namespace {

constexpr std::array magic{std::byte{0x1f}, std::byte{0x8b}};
constexpr int gzip_only = 15 + 16;  // zlib: the largest window, a gzip wrapper
/// The likely most that this many compressed bytes become. Images of digits: 5 times as many; deflate's bound is 1032.
/// A high ratio of a large file is not believed: memory allocated before the data come is paid for.
constexpr std::int64_t likely_ratio = 32, likely_ratio_of_much = 4, little = std::int64_t{64} << 20;

class GzipStream : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<ByteStream> source) : ByteStream(source->name()), source_(std::move(source)) {
    if (inflateInit2(&zlib_, gzip_only) != Z_OK) throw ResourceExhausted(name() + ": no memory to decompress it");
  }
  GzipStream(const GzipStream&) = delete;
  ~GzipStream() override { inflateEnd(&zlib_); }

  std::string place_of(std::int64_t position) const override {
    return text("byte ", position, " of the decompressed stream");
  }
  std::int64_t likely_bytes() const override {
    const std::int64_t compressed = source_->likely_bytes() + input_bytes;
    return std::min(likely_ratio * compressed, likely_ratio_of_much * compressed + little);
  }

 protected:
  std::size_t read_some(std::span<std::byte> out) override {
    out = out.first(std::min(out.size(), std::size_t{std::numeric_limits<uInt>::max()}));
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(out.size());
    while (zlib_.avail_out == out.size() && !(member_ended_ && !next_member())) inflate_more();
    return out.size() - zlib_.avail_out;
  }

 private:
  static constexpr std::int64_t input_bytes = 64 << 10;

  void inflate_more() {
    if (zlib_.avail_in == 0) refill();
    require<DataError>(zlib_.avail_in > 0, name(), ": the gzip data ends at byte ", compressed_position(),
                       " of the file, in the middle of a member; is it a partial download?");
    const int status = inflate(&zlib_, Z_NO_FLUSH);
    member_ended_ = status == Z_STREAM_END;
    require<DataError>(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR, name(),
                       ": corrupt gzip data at byte ", compressed_position(),
                       " of the file: ", zlib_.msg ? zlib_.msg : zError(status));
  }

  bool next_member() {
    if (zlib_.avail_in == 0) refill();
    if (zlib_.avail_in == 0) return false;
    require<DataError>(std::byte{*zlib_.next_in} == magic[0], name(), ": byte ", compressed_position(),
                       " of the file: bytes that are not gzip follow the compressed data");
    inflateReset(&zlib_);
    member_ended_ = false;
    return true;
  }

  void refill() {
    zlib_.next_in = reinterpret_cast<Bytef*>(input_.data());
    zlib_.avail_in = static_cast<uInt>(source_->read(input_));
  }
  std::int64_t compressed_position() const { return source_->position() - zlib_.avail_in; }

  std::unique_ptr<ByteStream> source_;
  std::vector<std::byte> input_ = std::vector<std::byte>(input_bytes);
  z_stream zlib_{};
  bool member_ended_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> gunzip_if_compressed(std::unique_ptr<ByteStream> bytes) {
  if (!std::ranges::equal(bytes->peek(magic.size()), magic)) return bytes;
  return std::make_unique<GzipStream>(std::move(bytes));
}

}  // namespace gradus
