/// Format of a record: length (u64), checksum of the length, the bytes, checksum of the bytes; all little endian.
#include "gradus/formats/tfrecord.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/byte_stream.h"
#include "gradus/formats/crc32c.h"
#include "gradus/formats/gzip.h"

namespace gradus {
namespace {

constexpr std::int64_t header_bytes = 12, footer_bytes = 4;

template <class T> T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string place_in(const std::string& name, std::int64_t record, std::int64_t byte) {
  return text(name, ": record ", record, " (byte ", byte, ")");
}

/// Reads record after record. `sink(begin, bytes, checksum)` takes each.
template <class Sink> void read_records(ByteStream& stream, const Sink& sink) {
  std::vector<std::byte> record;
  for (std::int64_t number = 0;; ++number) {
    const std::int64_t begin = stream.position();
    const auto complain_unless = [&](bool ok, const auto&... what) {
      require<DataError>(ok, place_in(stream.name(), number, begin), ": ", what...);
    };
    std::array<std::byte, header_bytes> header;
    const std::size_t got = stream.read(header);
    if (got == 0) return;
    complain_unless(got == header.size(), "the file ends within its length");
    complain_unless(number_at<std::uint32_t>(header, 8) == masked_crc32c(std::span(header).first(8)),
                    "the checksum of its length does not agree; is it a TFRecord file, plain or compressed by gzip?");
    const auto length = number_at<std::uint64_t>(header, 0);
    complain_unless(static_cast<std::int64_t>(length) >= 0 &&
                        static_cast<std::int64_t>(length) <= stream.likely_bytes() - footer_bytes,
                    "it claims ", length, " bytes, ", stream.likely_bytes(), " follow");
    record.resize(length + footer_bytes);
    complain_unless(stream.read(record) == record.size(), "the file ends within it");
    const std::span<const std::byte> payload = std::span(record).first(length);
    const auto checksum = number_at<std::uint32_t>(record, length);
    complain_unless(checksum == masked_crc32c(payload), "the checksum of its bytes does not agree");
    sink(begin, payload, checksum);
  }
}

/// True if the stream is compressed: the length of a record may begin as gzip does, its checksum tells.
bool is_compressed(ByteStream& stream) {
  const std::span<const std::byte> start = stream.peek(header_bytes);
  if (start.size() < 2 || start[0] != std::byte{0x1f} || start[1] != std::byte{0x8b}) return false;
  return start.size() < header_bytes || number_at<std::uint32_t>(start, 8) != masked_crc32c(start.first(8));
}

/// A file without a name for unpacked data; it goes with its descriptor.
int unnamed_file(const std::string& for_file) {
  const std::string ending(6, 'X');  // which mkostemp replaces
  std::string path = (std::filesystem::temp_directory_path() / ("gradus_records_" + ending)).string();
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  require<Unavailable>(descriptor >= 0, for_file, ": it is compressed, and no file to unpack it can be made in ",
                       std::filesystem::temp_directory_path().string(), ": ", std::generic_category().message(errno));
  unlink(path.c_str());
  return descriptor;
}

void write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t at, const std::string& for_file) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(descriptor, bytes.data(), bytes.size(), at);
    if (count < 0 && errno == EINTR) continue;
    require<ResourceExhausted>(count > 0, for_file, ": it is compressed, and cannot be unpacked in ",
                               std::filesystem::temp_directory_path().string(), ": ",
                               std::generic_category().message(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    at += count;
  }
}

}  // namespace

TfrecordFile::TfrecordFile(const std::filesystem::path& file) : name_(file.string()) {
  auto stream = open_file(file);
  const bool unpacks = is_compressed(*stream);
  if (unpacks) stream = gunzip_if_compressed(std::move(stream));
  descriptor_ = unpacks ? unnamed_file(name_) : open(file.c_str(), O_RDONLY | O_CLOEXEC);
  require<Unavailable>(descriptor_ >= 0, name_, ": cannot be opened: ", std::generic_category().message(errno));
  try {
    read_records(*stream, [&](std::int64_t begin, std::span<const std::byte> payload, std::uint32_t checksum) {
      places_.push_back({begin + header_bytes, static_cast<std::int64_t>(payload.size()), checksum});
      if (unpacks) write_at(descriptor_, payload, places_.back().begin, name_);
    });
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

TfrecordFile::~TfrecordFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string TfrecordFile::place_of(std::int64_t i) const {
  return place_in(name_, i, places_[static_cast<std::size_t>(i)].begin - header_bytes);
}

std::uint64_t TfrecordFile::checksum() const {
  std::uint64_t hash = 0;
  for (const Place& place : places_) hash = mix(hash, mix(place.checksum, static_cast<std::uint64_t>(place.bytes)));
  return hash;
}

std::vector<std::byte> TfrecordFile::record(std::int64_t i) const {
  const Place& place = places_[static_cast<std::size_t>(i)];
  std::vector<std::byte> bytes(static_cast<std::size_t>(place.bytes));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        pread(descriptor_, bytes.data() + done, bytes.size() - done, place.begin + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    require<Unavailable>(count >= 0, place_of(i), ": cannot be read: ", std::generic_category().message(errno));
    require<DataError>(count > 0, place_of(i), ": the file became shorter since it was opened");
    done += static_cast<std::size_t>(count);
  }
  require<DataError>(masked_crc32c(bytes) == place.checksum, place_of(i), ": the file changed since it was opened");
  return bytes;
}

std::vector<std::vector<std::byte>> parse_tfrecord(std::span<const std::byte> bytes, const std::string& name) {
  std::vector<std::vector<std::byte>> records;
  auto stream = stream_of(bytes, name);
  if (is_compressed(*stream)) stream = gunzip_if_compressed(std::move(stream));
  read_records(*stream, [&](std::int64_t, std::span<const std::byte> payload, std::uint32_t) {
    records.emplace_back(payload.begin(), payload.end());
  });
  return records;
}

void write_tfrecord(const std::filesystem::path& file, std::span<const std::string> records) {
  AtomicFile out(file);
  const auto write_number = [&](auto value) { out.write(std::as_bytes(std::span(&value, 1))); };
  for (const std::string& record : records) {
    const std::uint64_t length = record.size();
    write_number(length);
    write_number(masked_crc32c(std::as_bytes(std::span(&length, 1))));
    out.write(record);
    write_number(masked_crc32c(std::as_bytes(std::span(record))));
  }
  out.commit();
}

}  // namespace gradus
