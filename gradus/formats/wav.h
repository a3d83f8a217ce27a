/// WAV files of 16-bit PCM, as tf.audio.decode_wav and encode_wav have them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Sound: samples as numbers from -1 to 1, and their rate.
struct Wav {
  Tensor audio;                  // f32 [samples, channels]
  std::int64_t sample_rate = 0;  // samples per second
};

/// Options of decode_wav and load_wav.
struct WavOptions {
  /// Channels of the result: further ones are left out, the last one is repeated where there are fewer. -1: as many as
  /// there are.
  std::int64_t desired_channels = -1;
  /// Samples of the result: further ones are left out, zeros are put behind fewer. -1: as many as there are.
  std::int64_t desired_samples = -1;
  static constexpr auto ranges() { return std::array{Allowed::at_least(-1, "desired_channels desired_samples")}; }
};

/// Decodes a WAV file of 16-bit PCM in memory: f32 [samples, channels], each the integer / 32768. `name` stands for the
/// file in messages. DataError, with the byte, for bytes that are no such file, are damaged or cut off, or have another
/// encoding. ResourceExhausted for desired sizes that do not fit into memory.
Wav decode_wav(std::span<const std::byte> bytes, WavOptions options = {}, const std::string& name = "decode_wav");
/// decode_wav for a file. Unavailable if it cannot be read.
Wav load_wav(const std::filesystem::path& file, WavOptions options = {});

/// A WAV file of 16-bit PCM: f32 [samples, channels] times 32768, rounded, within -32768 and 32767. InvalidArgument for
/// another dtype or number of dimensions, for a NaN, for a rate that is not positive, for more than 32,767 channels,
/// and for more than 4 GiB.
std::vector<std::byte> encode_wav(const Tensor& audio, std::int64_t sample_rate);
/// Writes encode_wav's file, which appears whole or not at all. Unavailable where it may not be written.
void save_wav(const std::filesystem::path& file, const Tensor& audio, std::int64_t sample_rate);

}  // namespace gradus
