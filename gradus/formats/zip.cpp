/// Reading zip files, of which nothing is taken for granted, and writing them.
#include "gradus/formats/zip.h"
#include <zlib.h>
#include <algorithm>
#include <cstring>
#include <unordered_set>
#include "gradus/base/error.h"

namespace gradus {
namespace {

using Bytes = std::span<const std::byte>;

std::uint32_t checksum(Bytes bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

constexpr std::uint32_t local_mark = 0x04034b50, central_mark = 0x02014b50, end_mark = 0x06054b50,
                        end64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr std::uint32_t in_extra = 0xffffffff;  // the number stands in the zip64 field
constexpr std::uint64_t end_bytes = 22, locator_bytes = 20, central_bytes = 46, local_bytes = 30;

/// Little-endian numbers at places of a file.
class Reader {
 public:
  Reader(Bytes bytes, const std::string& name, std::string_view kind) : bytes_(bytes), name_(name), kind_(kind) {}
  std::uint64_t size() const { return bytes_.size(); }
  template <class T> T at(std::uint64_t place) const {
    expect(sizeof(T) <= bytes_.size() && place <= bytes_.size() - sizeof(T), place, "it is cut off");
    T value;
    std::memcpy(&value, bytes_.data() + place, sizeof value);
    return value;
  }
  Bytes part(std::uint64_t place, std::uint64_t count) const {
    expect(place <= bytes_.size() && count <= bytes_.size() - place, place, "a part lies outside the file");
    return bytes_.subspan(place, count);
  }
  void expect(bool ok, std::uint64_t place, std::string_view what) const {
    require<DataError>(ok, name_, ": byte ", place, ": no ", kind_, ": ", what);
  }
  const std::string& name() const { return name_; }

 private:
  Bytes bytes_;
  const std::string& name_;
  std::string_view kind_;
};

struct Directory {
  std::uint64_t place = 0, entries = 0;
};

Directory directory_of(const Reader& in) {
  in.expect(in.size() >= end_bytes, in.size(), "it is too short");
  std::uint64_t end = in.size() - end_bytes;
  const std::uint64_t first = end > 0xffff ? end - 0xffff : 0;  // a comment may follow
  while (in.at<std::uint32_t>(end) != end_mark) in.expect(end-- > first, in.size(), "it has no directory at its end");
  Directory directory{in.at<std::uint32_t>(end + 16), in.at<std::uint16_t>(end + 10)};
  if (directory.place != in_extra && directory.entries != 0xffff) return directory;
  if (end < locator_bytes || in.at<std::uint32_t>(end - locator_bytes) != locator_mark) return directory;
  const auto end64 = in.at<std::uint64_t>(end - locator_bytes + 8);
  in.expect(end64 <= in.size() && in.at<std::uint32_t>(end64) == end64_mark, end64, "its directory is damaged");
  return {in.at<std::uint64_t>(end64 + 48), in.at<std::uint64_t>(end64 + 32)};
}

/// The numbers that did not fit stand in the zip64 field, in this order.
void read_large(const Reader& in, ZipEntry& entry, std::uint64_t place, std::uint64_t bytes) {
  const std::uint64_t end = place + bytes;
  while (place + 4 <= end) {
    const auto kind = in.at<std::uint16_t>(place), size = in.at<std::uint16_t>(place + 2);
    place += 4;
    if (kind == 1) {
      for (std::uint64_t* number : {&entry.unpacked, &entry.packed, &entry.place})
        if (*number == in_extra) {
          in.expect(place + 8 <= end, place, "a size is missing");
          *number = in.at<std::uint64_t>(place);
          place += 8;
        }
      return;
    }
    place += size;
  }
}

/// Parts that overlap would let a small file claim any number of large ones.
std::vector<ZipEntry> entries_of(const Reader& in) {
  const Directory directory = directory_of(in);
  in.expect(directory.entries <= in.size() / central_bytes, directory.place, "it claims more parts than it can hold");
  std::vector<ZipEntry> entries;
  std::uint64_t at = directory.place, left = in.size();  // bytes that no part before took
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    in.expect(in.at<std::uint32_t>(at) == central_mark, at, "its directory is damaged");
    const std::uint64_t name = in.at<std::uint16_t>(at + 28), extra = in.at<std::uint16_t>(at + 30),
                        comment = in.at<std::uint16_t>(at + 32);
    in.expect((in.at<std::uint16_t>(at + 8) & 1) == 0, at, "it is encrypted");
    const Bytes spelt = in.part(at + central_bytes, name);
    ZipEntry entry{.name = std::string(reinterpret_cast<const char*>(spelt.data()), spelt.size()),
                   .method = in.at<std::uint16_t>(at + 10),
                   .crc = in.at<std::uint32_t>(at + 16),
                   .packed = in.at<std::uint32_t>(at + 20),
                   .unpacked = in.at<std::uint32_t>(at + 24),
                   .place = in.at<std::uint32_t>(at + 42)};
    in.part(at + central_bytes + name, extra);
    read_large(in, entry, at + central_bytes + name, extra);
    in.expect(entry.packed <= left, at, "its parts overlap");
    left -= entry.packed;
    entries.push_back(std::move(entry));
    at += central_bytes + name + extra + comment;
  }
  std::unordered_set<std::string_view> names;
  for (const ZipEntry& entry : entries)
    in.expect(names.insert(entry.name).second, directory.place, text("two parts are called `", entry.name, "`"));
  return entries;
}

std::vector<std::byte> inflated(const Reader& in, const ZipEntry& entry, Bytes packed) {
  in.expect(entry.unpacked / 1040 <= packed.size() + 1, entry.place,
            text("`", entry.name, "` claims an impossible size"));
  std::vector<std::byte> out(entry.unpacked);
  z_stream stream{};
  require<ResourceExhausted>(inflateInit2(&stream, -MAX_WBITS) == Z_OK, in.name(), ": no memory to decompress it");
  std::size_t read = 0, written = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    constexpr std::size_t most = 1u << 30;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(std::min(most, packed.size() - read));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(std::min(most, out.size() - written));
    const uInt in_before = stream.avail_in, out_before = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    read += in_before - stream.avail_in;
    written += out_before - stream.avail_out;
  }
  inflateEnd(&stream);
  in.expect(result == Z_STREAM_END && written == out.size(), entry.place,
            text("`", entry.name, "` cannot be decompressed"));
  return out;
}

/// Builds the parts of a file.
class Writer {
 public:
  template <class... T> Writer& numbers(T... values) {
    (out_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
    return *this;
  }
  Writer& characters(std::string_view text) {
    out_ += text;
    return *this;
  }
  const std::string& written() const { return out_; }

 private:
  std::string out_;
};

using u16_ = std::uint16_t;
using u32_ = std::uint32_t;
using u64_ = std::uint64_t;
constexpr u16_ version = 45, january_1980 = 0x21;  // 45: with zip64; a fixed date: the same arrays give the same bytes

std::string local_header(const ZipEntry& e) {
  return Writer()
      .numbers(local_mark, version, u16_{0}, u16_{0}, u16_{0}, january_1980, e.crc, in_extra, in_extra,
               static_cast<u16_>(e.name.size()), u16_{20})
      .characters(e.name)
      .numbers(u16_{1}, u16_{16}, e.unpacked, e.packed)
      .written();
}

std::string central_header(const ZipEntry& e) {
  return Writer()
      .numbers(central_mark, version, version, u16_{0}, u16_{0}, u16_{0}, january_1980, e.crc, in_extra, in_extra,
               static_cast<u16_>(e.name.size()), u16_{28}, u16_{0}, u16_{0}, u16_{0}, u32_{0}, in_extra)
      .characters(e.name)
      .numbers(u16_{1}, u16_{24}, e.unpacked, e.packed, e.place)
      .written();
}

std::string end_of(u64_ entries, u64_ place, u64_ bytes) {
  return Writer()
      .numbers(end64_mark, u64_{44}, version, version, u32_{0}, u32_{0}, entries, entries, bytes, place)
      .numbers(locator_mark, u32_{0}, place + bytes, u32_{1})
      .numbers(end_mark, u16_{0}, u16_{0}, u16_{0xffff}, u16_{0xffff}, in_extra, in_extra, u16_{0})
      .written();
}

}  // namespace

ZipReader::ZipReader(Bytes bytes, std::string name, std::string_view kind)
    : name_(std::move(name)), kind_(kind), bytes_(bytes), entries_(entries_of(Reader(bytes_, name_, kind_))) {}

Bytes ZipReader::contents(const ZipEntry& entry, std::vector<std::byte>& held) const {
  const Reader in(bytes_, name_, kind_);
  in.expect(in.at<std::uint32_t>(entry.place) == local_mark, entry.place,
            text("`", entry.name, "` is not where it should be"));
  const std::uint64_t begin =
      entry.place + local_bytes + in.at<std::uint16_t>(entry.place + 26) + in.at<std::uint16_t>(entry.place + 28);
  const Bytes packed = in.part(begin, entry.packed);
  in.expect(entry.method == 0 || entry.method == Z_DEFLATED, entry.place,
            text("`", entry.name, "` is compressed by method ", entry.method, "; known are none and deflate"));
  Bytes plain = packed;
  if (entry.method == Z_DEFLATED) plain = held = inflated(in, entry, packed);
  in.expect(plain.size() == entry.unpacked && checksum(plain) == entry.crc, entry.place,
            text("the checksum of `", entry.name, "` does not agree"));
  return plain;
}

void ZipWriter::add(const std::string& name, std::span<const Bytes> pieces) {
  ZipEntry entry{.name = name, .place = place_};
  for (const Bytes piece : pieces) {
    if (piece.empty()) continue;  // without a place zlib starts over
    entry.crc =
        static_cast<std::uint32_t>(crc32_z(entry.crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size()));
    entry.unpacked += piece.size();
  }
  entry.packed = entry.unpacked;
  const std::string local = local_header(entry);
  file_.write(local);
  for (const Bytes piece : pieces) file_.write(piece);
  directory_ += central_header(entry);
  place_ += local.size() + entry.unpacked;
  ++entries_;
}

void ZipWriter::finish() {
  file_.write(directory_);
  file_.write(end_of(entries_, place_, directory_.size()));
}

}  // namespace gradus
