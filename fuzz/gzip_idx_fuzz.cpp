/// The same behind a compressor: the fuzzer's bytes are packed as gzip, so that what it changes reaches the idx parser
/// through the inflating reader and not only the check of the checksum. The first byte cuts the packed stream short.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include <zlib.h>
#include "gradus/base/error.h"
#include "gradus/formats/idx.h"

namespace {
std::vector<std::uint8_t> gzip(std::span<const std::uint8_t> plain) {
  z_stream stream{};
  constexpr int with_gzip_header = 15 + 16;
  if (deflateInit2(&stream, 1, Z_DEFLATED, with_gzip_header, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::vector<std::uint8_t> packed(deflateBound(&stream, plain.size()));
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<std::uint8_t> packed = gzip(std::span(data, size).subspan(1));
  const std::size_t kept = packed.size() - std::min<std::size_t>(packed.size(), data[0]);
  try {
    gradus::parse_idx(std::as_bytes(std::span(packed).first(kept)));
  } catch (const gradus::Error&) {}
  return 0;
}
