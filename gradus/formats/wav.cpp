/// Every size in the file is checked against the bytes that are there.
#include "gradus/formats/wav.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include "gradus/base/input_file.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/atomic_file.h"

namespace gradus {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::uint16_t pcm = 1, extensible = 0xfffe;
constexpr std::int64_t sample_bytes = 2;
constexpr float full_scale = 32768;

/// Reads numbers one after the other.
class WavReader {
 public:
  WavReader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  template <class T> T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }
  void word(std::string_view expected, std::string_view what) {
    const std::size_t place = place_;
    const std::string_view found = letters(what);
    require<DataError>(found == expected, name_, ": byte ", place, ": no WAV file: expected `", expected, "`, found `",
                       found, "`");
  }
  std::string_view letters(std::string_view what) { return {reinterpret_cast<const char*>(take(4, what).data()), 4}; }
  std::span<const std::byte> take(std::size_t count, std::string_view what) {
    require<DataError>(count <= left(), name_, ": byte ", place_, ": the file ends in ", what, ": ", count,
                       " bytes are needed, ", left(), " follow");
    const auto taken = bytes_.subspan(place_, count);
    place_ += count;
    return taken;
  }
  std::size_t left() const { return bytes_.size() - place_; }
  std::size_t place() const { return place_; }
  const std::string& name() const { return name_; }

 private:
  const std::span<const std::byte> bytes_;
  const std::string& name_;
  std::size_t place_ = 0;
};

struct WavFormat {
  std::uint16_t channels;
  std::uint32_t rate;
};

/// The bytes behind the 16 that every format has. Those of an extensible one name its encoding.
void read_extension(WavReader& in, std::uint32_t size, std::uint16_t encoding) {
  if (size == 16) return;
  const std::size_t place = in.place();
  const auto rest = in.take(size - 16, "its format");
  if (encoding != extensible) return;
  std::uint16_t inner;
  std::memcpy(&inner, rest.data() + 8, sizeof inner);
  require<DataError>(inner == pcm, in.name(), ": byte ", place + 8, ": encoding ", inner,
                     " is not supported; expected 16-bit PCM");
}

WavFormat read_format(WavReader& in) {
  in.word("RIFF", "its header");
  in.number<std::uint32_t>("its header");  // the size of all, which streams leave open
  in.word("WAVE", "its header");
  in.word("fmt ", "its header");
  const std::size_t place = in.place();
  const auto size = in.number<std::uint32_t>("its format");
  require<DataError>(size == 16 || size == 18 || size == 40, in.name(), ": byte ", place, ": a format of ", size,
                     " bytes; expected 16, 18 or 40");
  const auto encoding = in.number<std::uint16_t>("its format");
  require<DataError>(encoding == pcm || (encoding == extensible && size == 40), in.name(), ": byte ", place + 4,
                     ": encoding ", encoding, " is not supported; expected 16-bit PCM");
  const auto channels = in.number<std::uint16_t>("its format");
  const auto rate = in.number<std::uint32_t>("its format");
  const auto bytes_a_second = in.number<std::uint32_t>("its format");
  const auto bytes_a_sample = in.number<std::uint16_t>("its format");
  const auto bits = in.number<std::uint16_t>("its format");
  require<DataError>(bits == 16, in.name(), ": byte ", place + 18, ": samples of ", bits,
                     " bits; expected 16-bit PCM, into which other programs convert");
  require<DataError>(channels > 0 && rate > 0, in.name(), ": byte ", place + 6, ": ", channels, " channels at ", rate,
                     " Hz");
  require<DataError>(bytes_a_sample == sample_bytes * channels, in.name(), ": byte ", place + 16, ": ", channels,
                     " channels of 16 bits take ", sample_bytes * channels, " bytes, not ", bytes_a_sample);
  require<DataError>(bytes_a_second == std::uint64_t{bytes_a_sample} * rate, in.name(), ": byte ", place + 12, ": ",
                     rate, " samples of ", bytes_a_sample, " bytes a second are not ", bytes_a_second, " bytes");
  read_extension(in, size, encoding);
  return {channels, rate};
}

/// The samples: the one chunk called `data`. Others are passed over; one of an odd size has a byte behind it.
std::span<const std::byte> read_samples(WavReader& in) {
  std::optional<std::span<const std::byte>> samples;
  while (in.left() > 0) {
    const std::size_t place = in.place();
    const bool is_data = in.letters("the name of a chunk") == "data";
    const auto size = in.number<std::uint32_t>("the size of a chunk");
    const auto chunk = in.take(size, is_data ? "its samples" : "a chunk");
    if (size % 2 == 1 && in.left() > 0) in.take(1, "a chunk");
    if (!is_data) continue;
    require<DataError>(!samples, in.name(), ": byte ", place, ": a second chunk of samples");
    samples = chunk;
  }
  require<DataError>(samples.has_value(), in.name(), ": byte ", in.place(), ": the file has no samples");
  return *samples;
}

std::int16_t sample_at(std::span<const std::byte> samples, std::int64_t index) {
  std::int16_t value;
  std::memcpy(&value, samples.data() + index * sample_bytes, sizeof value);
  return value;
}

Tensor audio_of(std::span<const std::byte> samples, std::int64_t channels, const WavOptions& options) {
  const std::int64_t count = std::ssize(samples) / (channels * sample_bytes);
  const Shape shape{options.desired_samples >= 0 ? options.desired_samples : count,
                    options.desired_channels >= 0 ? options.desired_channels : channels};
  const Spec spec{f32, shape};
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec), "wav file");
  auto* out = buffer->data<float>();
  for (std::int64_t i = 0; i < shape[0]; ++i)
    for (std::int64_t channel = 0; channel < shape[1]; ++channel)
      *out++ = i < count ? sample_at(samples, i * channels + std::min(channel, channels - 1)) / full_scale : 0.0f;
  return Tensor::of_buffer(spec, std::move(buffer));
}

template <class T> void put_number(std::vector<std::byte>& out, T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}
void put_word(std::vector<std::byte>& out, std::string_view word) {
  const auto bytes = std::as_bytes(std::span(word));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

Wav decode_wav(std::span<const std::byte> bytes, WavOptions options, const std::string& name) {
  check_options("decode_wav", options);
  WavReader in(bytes, name);
  const WavFormat format = read_format(in);
  return {audio_of(read_samples(in), format.channels, options), format.rate};
}

Wav load_wav(const std::filesystem::path& file, WavOptions options) {
  return decode_wav(read_whole_file(file), options, file.string());
}

std::vector<std::byte> encode_wav(const Tensor& audio, std::int64_t sample_rate) {
  constexpr std::int64_t header_bytes = 44, most_channels = std::numeric_limits<std::uint16_t>::max();
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  const Spec spec{audio.dtype(), audio.shape()};
  require(spec.dtype == f32 && spec.shape.rank() == 2, "encode_wav: the audio is ", spec,
          ", expected f32[samples,channels]");
  const std::int64_t channels = spec.shape[1], samples = spec.shape.size(), frame = channels * sample_bytes;
  require(channels > 0 && frame <= most_channels, "encode_wav: expected 1 to ", most_channels / sample_bytes,
          " channels, got ", channels);
  require(sample_rate > 0 && sample_rate <= most / frame, "encode_wav: expected a sample_rate of 1 to ", most / frame,
          ", got ", sample_rate);
  require(samples <= (most - header_bytes) / sample_bytes, "encode_wav: ", samples, " samples are more than 4 GiB");
  std::vector<std::byte> out;
  out.reserve(static_cast<std::size_t>(header_bytes + samples * sample_bytes));
  put_word(out, "RIFF");
  put_number(out, static_cast<std::uint32_t>(header_bytes - 8 + samples * sample_bytes));
  put_word(out, "WAVEfmt ");
  put_number(out, std::uint32_t{16});
  put_number(out, pcm);
  put_number(out, static_cast<std::uint16_t>(channels));
  put_number(out, static_cast<std::uint32_t>(sample_rate));
  put_number(out, static_cast<std::uint32_t>(sample_rate * frame));
  put_number(out, static_cast<std::uint16_t>(frame));
  put_number(out, std::uint16_t{16});
  put_word(out, "data");
  put_number(out, static_cast<std::uint32_t>(samples * sample_bytes));
  const auto* values = static_cast<const float*>(audio.host());
  for (std::int64_t i = 0; i < samples; ++i) {
    require(!std::isnan(values[i]), "encode_wav: sample ", i / channels, " of channel ", i % channels, " is NaN");
    put_number(out,
               static_cast<std::int16_t>(std::clamp(std::round(values[i] * full_scale), -full_scale, full_scale - 1)));
  }
  return out;
}

void save_wav(const std::filesystem::path& file, const Tensor& audio, std::int64_t sample_rate) {
  const std::vector<std::byte> bytes = encode_wav(audio, sample_rate);
  AtomicFile out(file);
  out.write(bytes);
  out.commit();
}

}  // namespace gradus
