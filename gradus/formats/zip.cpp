/// Reading zip files, of which nothing is taken for granted, and writing them.
#include "gradus/formats/zip.h"
#include <zlib.h>
#include <algorithm>
#include <unordered_set>
#include "gradus/base/error.h"

namespace gradus {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t local_mark = 0x04034b50, central_mark = 0x02014b50, end_mark = 0x06054b50,
                        end64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr std::uint32_t in_extra = 0xffffffff;  // the number stands in the zip64 field
constexpr std::uint64_t end_bytes = 22, locator_bytes = 20, central_bytes = 46, local_bytes = 30;

/// Little-endian numbers at places of a file.
class ZipBytes {
 public:
  ZipBytes(const PlacedBytes& bytes, std::string_view kind) : bytes_(bytes), kind_(kind) {}
  std::uint64_t size() const { return bytes_.size; }
  template <class T> T at(std::uint64_t place) const {
    expect(sizeof(T) <= size() && place <= size() - sizeof(T), place, "it is cut off");
    T value;
    read(place, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  std::string characters(std::uint64_t place, std::uint64_t count) const {
    expect_part(place, count);
    std::string all(count, ' ');
    read(place, std::as_writable_bytes(std::span(all)));
    return all;
  }
  void read(std::uint64_t place, std::span<std::byte> out) const { bytes_.read(place, out); }
  void expect_part(std::uint64_t place, std::uint64_t count) const {
    expect(place <= size() && count <= size() - place, place, "a part lies outside the file");
  }
  void expect(bool ok, std::uint64_t place, std::string_view what) const {
    require<DataError>(ok, bytes_.name, ": byte ", place, ": no ", kind_, ": ", what);
  }
  const std::string& name() const { return bytes_.name; }

 private:
  const PlacedBytes& bytes_;
  std::string_view kind_;
};

struct Directory {
  std::uint64_t place = 0, entries = 0;
};

Directory directory_of(const ZipBytes& in) {
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
void read_large(const ZipBytes& in, ZipEntry& entry, std::uint64_t place, std::uint64_t bytes) {
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
std::vector<ZipEntry> entries_of(const ZipBytes& in) {
  const Directory directory = directory_of(in);
  in.expect(directory.entries <= in.size() / central_bytes, directory.place, "it claims more parts than it can hold");
  std::vector<ZipEntry> entries;
  std::uint64_t at = directory.place, left = in.size();  // bytes that no part before took
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    in.expect(in.at<std::uint32_t>(at) == central_mark, at, "its directory is damaged");
    const std::uint64_t name = in.at<std::uint16_t>(at + 28), extra = in.at<std::uint16_t>(at + 30),
                        comment = in.at<std::uint16_t>(at + 32);
    in.expect((in.at<std::uint16_t>(at + 8) & 1) == 0, at, "it is encrypted");
    ZipEntry entry{.name = in.characters(at + central_bytes, name),
                   .method = in.at<std::uint16_t>(at + 10),
                   .crc = in.at<std::uint32_t>(at + 16),
                   .packed = in.at<std::uint32_t>(at + 20),
                   .unpacked = in.at<std::uint32_t>(at + 24),
                   .place = in.at<std::uint32_t>(at + 42)};
    in.expect_part(at + central_bytes + name, extra);
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

/// The bytes of a part as they were before it was packed.
class PartStream : public ByteStream {
 public:
  PartStream(const ZipBytes& in, const ZipEntry& entry, std::string name)
      : ByteStream(std::move(name)), in_(in), entry_(entry), left_(entry.unpacked) {
    in.expect(in.at<std::uint32_t>(entry.place) == local_mark, entry.place, about("is not where it should be"));
    place_ =
        entry.place + local_bytes + in.at<std::uint16_t>(entry.place + 26) + in.at<std::uint16_t>(entry.place + 28);
    packed_left_ = entry.packed;
    in.expect_part(place_, entry.packed);
    in.expect(entry.method == 0 || entry.method == Z_DEFLATED, entry.place,
              about(text("is compressed by method ", entry.method, "; known are none and deflate")));
    in.expect(is_deflated() ? entry.unpacked / 1040 <= entry.packed + 1 : entry.unpacked == entry.packed, entry.place,
              about("claims an impossible size"));
    if (is_deflated()) begin_inflating();
    if (left_ == 0) finish();
  }
  std::int64_t likely_bytes() const override { return static_cast<std::int64_t>(left_); }

 protected:
  std::size_t read_some(std::span<std::byte> out) override {
    out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), left_)));
    if (out.empty()) return 0;
    const std::size_t count = is_deflated() ? inflate_some(out) : packed(out);
    crc_ = static_cast<std::uint32_t>(crc32_z(crc_, reinterpret_cast<const Bytef*>(out.data()), count));
    left_ -= count;
    if (left_ == 0) finish();
    return count;
  }

 private:
  bool is_deflated() const { return entry_.method == Z_DEFLATED; }
  std::string about(std::string_view what) const { return text("`", entry_.name, "` ", what); }

  void begin_inflating() {
    auto stream = std::make_unique<z_stream>();
    require<ResourceExhausted>(inflateInit2(stream.get(), -MAX_WBITS) == Z_OK, in_.name(),
                               ": no memory to decompress it");
    zlib_.reset(stream.release());
    input_.resize(std::size_t{64} << 10);
  }

  /// The next bytes of the part as they lie in the file.
  std::size_t packed(std::span<std::byte> out) {
    out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), packed_left_)));
    in_.read(place_, out);
    place_ += out.size();
    packed_left_ -= out.size();
    return out.size();
  }
  /// At least one byte.
  std::size_t inflate_some(std::span<std::byte> out) {
    out = out.first(std::min(out.size(), std::size_t{1} << 30));
    zlib_->next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_->avail_out = static_cast<uInt>(out.size());
    while (zlib_->avail_out == out.size()) {
      refill();
      const bool goes_on = !ended_ && zlib_->avail_in > 0;
      in_.expect(goes_on && inflates(), entry_.place, about("cannot be decompressed"));
    }
    return out.size() - zlib_->avail_out;
  }
  void refill() {
    if (zlib_->avail_in > 0) return;
    zlib_->next_in = reinterpret_cast<Bytef*>(input_.data());
    zlib_->avail_in = static_cast<uInt>(packed(input_));
  }
  bool inflates() {
    const int result = inflate(zlib_.get(), Z_NO_FLUSH);
    ended_ = result == Z_STREAM_END;
    return result == Z_OK || ended_;
  }
  /// True if the packed bytes hold no more than the bytes read.
  bool has_ended() {
    Bytef beyond;
    zlib_->next_out = &beyond;
    zlib_->avail_out = 1;
    while (!ended_) {
      refill();
      if (zlib_->avail_in == 0 || !inflates() || zlib_->avail_out == 0) return false;
    }
    return true;
  }
  void finish() {
    in_.expect(!is_deflated() || has_ended(), entry_.place, about("cannot be decompressed"));
    in_.expect(crc_ == entry_.crc, entry_.place, text("the checksum of `", entry_.name, "` does not agree"));
  }

  const ZipBytes in_;
  const ZipEntry& entry_;
  std::uint64_t place_ = 0, packed_left_ = 0, left_;
  std::uint32_t crc_ = 0;
  struct End {
    void operator()(z_stream* stream) const {
      inflateEnd(stream);
      delete stream;
    }
  };
  std::unique_ptr<z_stream, End> zlib_;  // of a deflated part
  bool ended_ = false;
  std::vector<std::byte> input_;
};

/// Builds the parts of a file.
class ZipRecord {
 public:
  template <class... T> ZipRecord& numbers(T... values) {
    (out_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
    return *this;
  }
  ZipRecord& characters(std::string_view text) {
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
  return ZipRecord()
      .numbers(local_mark, version, u16_{0}, u16_{0}, u16_{0}, january_1980, e.crc, in_extra, in_extra,
               static_cast<u16_>(e.name.size()), u16_{20})
      .characters(e.name)
      .numbers(u16_{1}, u16_{16}, e.unpacked, e.packed)
      .written();
}

std::string central_header(const ZipEntry& e) {
  return ZipRecord()
      .numbers(central_mark, version, version, u16_{0}, u16_{0}, u16_{0}, january_1980, e.crc, in_extra, in_extra,
               static_cast<u16_>(e.name.size()), u16_{28}, u16_{0}, u16_{0}, u16_{0}, u32_{0}, in_extra)
      .characters(e.name)
      .numbers(u16_{1}, u16_{24}, e.unpacked, e.packed, e.place)
      .written();
}

std::string end_of(u64_ entries, u64_ place, u64_ bytes) {
  return ZipRecord()
      .numbers(end64_mark, u64_{44}, version, version, u32_{0}, u32_{0}, entries, entries, bytes, place)
      .numbers(locator_mark, u32_{0}, place + bytes, u32_{1})
      .numbers(end_mark, u16_{0}, u16_{0}, u16_{0xffff}, u16_{0xffff}, in_extra, in_extra, u16_{0})
      .written();
}

}  // namespace

ZipReader::ZipReader(PlacedBytes bytes, std::string_view kind)
    : bytes_(std::move(bytes)), kind_(kind), entries_(entries_of(ZipBytes(bytes_, kind_))) {}

std::unique_ptr<ByteStream> ZipReader::open(const ZipEntry& entry, std::string name) const {
  return std::make_unique<PartStream>(ZipBytes(bytes_, kind_), entry, std::move(name));
}

std::vector<std::byte> ZipReader::contents(const ZipEntry& entry) const {
  const std::unique_ptr<ByteStream> part = open(entry, bytes_.name);
  std::vector<std::byte> all(entry.unpacked);
  part->read(all);
  return all;
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
