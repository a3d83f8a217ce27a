/// WAV files: values beside tf.audio.decode_wav's meaning, and files cut off or changed anywhere.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include "gradus/formats/wav.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::wav_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes wav_bytes(std::string_view characters) {
  const auto bytes = std::as_bytes(std::span(characters));
  return {bytes.begin(), bytes.end()};
}

/// A file of two channels at 8000 Hz with the samples (0, 1) (-32768, 32767) (16384, -1), written out by hand.
const Bytes stereo =
    wav_bytes(std::string_view("RIFF\x30\0\0\0WAVE"
                               "fmt \x10\0\0\0\x01\0\x02\0\x40\x1f\0\0\0\x7d\0\0\x04\0\x10\0"
                               "data\x0c\0\0\0\0\0\x01\0\0\x80\xff\x7f\0\x40\xff\xff",
                               56));

std::vector<float> samples_of(const Wav& wav) { return wav.audio.to_vector<float>(); }

TEST(WavFile, HoldsSamplesFromMinusOneToOne) {
  const Wav wav = decode_wav(stereo);
  EXPECT_EQ(wav.sample_rate, 8000);
  EXPECT_EQ(wav.audio.spec(), (Spec{f32, {3, 2}}));
  EXPECT_EQ(samples_of(wav), (std::vector<float>{0, 1.0f / 32768, -1, 32767.0f / 32768, 0.5f, -1.0f / 32768}));
  EXPECT_EQ(encode_wav(wav.audio, 8000), stereo);
}

TEST(WavFile, HasTheDesiredSizes) {
  constexpr float least = 1.0f / 32768, most = 32767.0f / 32768;
  EXPECT_EQ(samples_of(decode_wav(stereo, {.desired_channels = 1})), (std::vector<float>{0, -1, 0.5f}));
  EXPECT_EQ(samples_of(decode_wav(stereo, {.desired_channels = 3})),
            (std::vector<float>{0, least, least, -1, most, most, 0.5f, -least, -least}))
      << "the last channel is repeated";
  EXPECT_EQ(samples_of(decode_wav(stereo, {.desired_samples = 1})), (std::vector<float>{0, least}));
  EXPECT_EQ(samples_of(decode_wav(stereo, {.desired_channels = 1, .desired_samples = 5})),
            (std::vector<float>{0, -1, 0.5f, 0, 0}));
  EXPECT_EQ(decode_wav(stereo, {.desired_samples = 0}).audio.shape(), (Shape{0, 2}));
  expect_error<InvalidArgument>([] { decode_wav(stereo, {.desired_channels = -2}); }, {"desired_channels", "got -2"});
}

TEST(WavFile, RoundsAndSaturates) {
  const Tensor audio = constant({{0.5 / 32768}, {1.5 / 32768}, {-0.5 / 32768}, {1.0}, {-1.0}, {7.0}, {-7.0}});
  const Tensor again = decode_wav(encode_wav(audio, 1)).audio;
  EXPECT_EQ((again * 32768).to_vector<float>(), (std::vector<float>{1, 2, -1, 32767, -32768, 32767, -32768}));
}

TEST(WavFile, MayHaveOtherChunksAndLongerFormats) {
  Bytes longer = stereo;
  const Bytes list = wav_bytes(std::string_view("LIST\x03\0\0\0abc\0", 12));  // of odd size, filled up
  longer.insert(longer.begin() + 36, list.begin(), list.end());
  EXPECT_EQ(samples_of(decode_wav(longer)), samples_of(decode_wav(stereo)));
  Bytes eighteen = stereo;
  eighteen[16] = std::byte{18};
  eighteen.insert(eighteen.begin() + 36, 2, std::byte{0});
  EXPECT_EQ(samples_of(decode_wav(eighteen)), samples_of(decode_wav(stereo)));
  Bytes extensible = stereo;
  extensible[16] = std::byte{40};
  extensible[20] = std::byte{0xfe};
  extensible[21] = std::byte{0xff};
  Bytes extension(24);
  extension[8] = std::byte{1};
  extensible.insert(extensible.begin() + 36, extension.begin(), extension.end());
  EXPECT_EQ(samples_of(decode_wav(extensible)), samples_of(decode_wav(stereo)));
  extensible[44] = std::byte{3};
  expect_error<DataError>([&] { decode_wav(extensible); }, {"byte 44: encoding 3 is not supported"});
}

TEST(WavFile, ThatIsNoneSaysWhere) {
  const auto changed = [](std::size_t place, unsigned value) {
    Bytes bytes = stereo;
    bytes[place] = std::byte{static_cast<unsigned char>(value)};
    return [bytes] { decode_wav(bytes, {}, "a.wav"); };
  };
  expect_error<DataError>(changed(0, 'X'), {"a.wav: byte 0: no WAV file: expected `RIFF`, found `XIFF`"});
  expect_error<DataError>(changed(8, 'X'), {"a.wav: byte 8: ", "`WAVE`"});
  expect_error<DataError>(changed(16, 17), {"a.wav: byte 16: a format of 17 bytes"});
  expect_error<DataError>(changed(20, 3), {"a.wav: byte 20: encoding 3 is not supported"});
  expect_error<DataError>(changed(22, 0), {"a.wav: byte 22: 0 channels"});
  expect_error<DataError>(changed(28, 1), {"a.wav: byte 28: 8000 samples of 4 bytes"});
  expect_error<DataError>(changed(32, 2), {"a.wav: byte 32: 2 channels of 16 bits take 4 bytes, not 2"});
  expect_error<DataError>(changed(34, 24), {"a.wav: byte 34: samples of 24 bits"});
  expect_error<DataError>(changed(36, 'X'), {"the file has no samples"});
  expect_error<DataError>(changed(41, 1), {"a.wav: byte 44: the file ends in its samples: 268 bytes are needed, 12"});
  Bytes twice = stereo;
  twice.insert(twice.end(), stereo.begin() + 36, stereo.end());
  expect_error<DataError>([&] { decode_wav(twice); }, {"byte 56: a second chunk of samples"});
}

TEST(WavFile, CutOffAnywhereIsADataError) {
  for (std::size_t size = 0; size < stereo.size(); ++size)
    EXPECT_THROW(decode_wav(std::span(stereo).first(size)), DataError) << size;
  for (std::size_t place = 0; place < stereo.size(); ++place)
    for (const unsigned value : {0u, 0x7fu, 0x80u, 0xffu}) {
      Bytes bytes = stereo;
      bytes[place] = std::byte{static_cast<unsigned char>(value)};
      try {
        EXPECT_LE(decode_wav(bytes).audio.shape().size(), 6);
      } catch (const DataError&) {}
    }
}

TEST(WavFile, IsWrittenAndReadAgain) {
  const EmptyTestDirectory directory;
  const auto file = directory.path() / "tone.wav";
  const Tensor tone = reshape(sin(cast(range(400), f32) * 0.1f), {200, 2});
  save_wav(file, tone, 44100);
  const Wav wav = load_wav(file);
  EXPECT_EQ(wav.sample_rate, 44100);
  EXPECT_LE(max_abs_difference(wav.audio, tone), 1.0 / 32768);
  EXPECT_THROW(load_wav(directory.path() / "none.wav"), Unavailable);
  EXPECT_THROW(save_wav(directory.path() / "no" / "tone.wav", tone, 1), Unavailable);
}

TEST(WavFile, OfWhatIsNoSound) {
  expect_error<InvalidArgument>([] { encode_wav(zeros({3}), 8000); }, {"f32[3], expected f32[samples,channels]"});
  expect_error<InvalidArgument>([] { encode_wav(zeros({3, 1}, i32), 8000); }, {"i32[3,1]"});
  expect_error<InvalidArgument>([] { encode_wav(zeros({3, 0}), 8000); }, {"channels, got 0"});
  expect_error<InvalidArgument>([] { encode_wav(zeros({3, 1}), 0); }, {"sample_rate", "got 0"});
  expect_error<InvalidArgument>([] { encode_wav(full({3, 2}, std::numeric_limits<float>::quiet_NaN()), 8000); },
                                {"sample 0 of channel 0 is NaN"});
}

}  // namespace
}  // namespace gradus::wav_test
