/// Records (length, checksum, event, checksum) of tensorflow.Event messages. Field numbers are those of event.proto,
/// summary.proto and graph.proto.
#include "gradus/formats/event_file.h"
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <limits>
#include <system_error>
#include "gradus/base/host_name.h"
#include "gradus/formats/crc32c.h"
#include "gradus/formats/png_writer.h"
#include "gradus/formats/protobuf_writer.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

static_assert(std::endian::native == std::endian::little);

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ProtobufWriter event() {
  ProtobufWriter out;
  out.number(1, seconds_now());
  return out;
}

std::string event_of(std::int64_t step, const ProtobufWriter& value) {
  ProtobufWriter summary, out = event();
  summary.message(1, value);
  out.integer(2, step);
  out.message(5, summary);
  return out.written();
}

constexpr std::size_t classes = 30;

ProtobufWriter histogram_of(std::span<const double> all) {
  std::vector<double> values;
  std::ranges::copy_if(all, std::back_inserter(values), [](double x) { return std::isfinite(x); });
  ProtobufWriter out;
  if (values.empty()) return out;
  const auto [low, high] = std::ranges::minmax(values);
  double sum = 0, squares = 0;
  std::vector<double> limits, counts(classes);
  const double width = high / classes - low / classes;
  for (std::size_t i = 1; i < classes; ++i) limits.push_back(low + width * static_cast<double>(i));
  limits.push_back(high);
  for (const double x : values) {
    sum += x;
    squares += x * x;
    const double place = width > 0 ? (x - low) / width : 0;
    ++counts[std::min(classes - 1, static_cast<std::size_t>(std::max(0.0, place)))];
  }
  out.number(1, low);
  out.number(2, high);
  out.number(3, static_cast<double>(values.size()));
  out.number(4, sum);
  out.number(5, squares);
  out.numbers(6, limits);
  out.numbers(7, counts);
  return out;
}

/// TensorFlow's number of a dtype.
int type_number(DType t) {
  constexpr std::pair<DType, int> numbers[] = {{f32, 1},  {f64, 2},  {i32, 3},      {u8, 4},    {i16, 5},
                                               {i8, 6},   {i64, 9},  {boolean, 10}, {bf16, 14}, {u16, 17},
                                               {f16, 19}, {u32, 22}, {u64, 23}};
  for (const auto& [dtype, number] : numbers)
    if (dtype == t) return number;
  return 0;
}

ProtobufWriter shape_of(const Shape& shape) {
  ProtobufWriter out;
  for (const std::int64_t extent : shape) {
    ProtobufWriter dimension;
    dimension.integer(1, std::max<std::int64_t>(extent, -1));
    out.message(2, dimension);
  }
  return out;
}

void add_attribute(ProtobufWriter& node, std::string_view name, const ProtobufWriter& value) {
  ProtobufWriter entry;
  entry.bytes(1, name);
  entry.message(2, value);
  node.message(5, entry);
}

ProtobufWriter node_of(const ShownNode& shown) {
  ProtobufWriter node, type, shapes, list;
  node.bytes(1, shown.name);
  node.bytes(2, shown.op);
  for (const std::string& input : shown.inputs) node.bytes(3, input);
  type.integer(6, type_number(shown.spec.dtype));
  add_attribute(node, "dtype", type);
  shapes.message(7, shape_of(shown.spec.shape));
  list.message(1, shapes);
  add_attribute(node, "_output_shapes", list);
  return node;
}

}  // namespace

SummaryWriter::SummaryWriter(const std::filesystem::path& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  require<Unavailable>(!problem, directory.string(), ": the directory cannot be made: ", problem.message());
  static std::atomic<int> count = 0;
  file_ = directory / gradus::text("events.out.tfevents.", static_cast<std::int64_t>(seconds_now()), ".",
                                   host_name("host"), ".", getpid(), ".", count++, ".v2");
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  require<Unavailable>(descriptor_ >= 0, file_.string(),
                       ": cannot be written: ", std::generic_category().message(errno));
  ProtobufWriter version = event();
  version.bytes(3, "brain.Event:2");
  write_record(version.written());
}

SummaryWriter::~SummaryWriter() { close(descriptor_); }

void SummaryWriter::write_record(const std::string& bytes) {
  const auto raw = [](const auto& number) { return std::as_bytes(std::span(&number, 1)); };
  const std::uint64_t length = bytes.size();
  const std::uint32_t of_length = masked_crc32c(raw(length)), of_bytes = masked_crc32c(std::as_bytes(std::span(bytes)));
  std::string record;
  const auto append = [&](const auto& number) { record.append(reinterpret_cast<const char*>(&number), sizeof number); };
  append(length);
  append(of_length);
  record += bytes;
  append(of_bytes);
  for (std::string_view rest = record; !rest.empty();) {
    const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const std::string why =
          gradus::text(file_.string(), ": cannot be written: ", std::generic_category().message(errno));
      if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) throw ResourceExhausted(why);
      throw Unavailable(why);
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

void SummaryWriter::scalar(const std::string& tag, std::int64_t step, double value) {
  ProtobufWriter out;
  out.bytes(1, tag);
  out.number(2, static_cast<float>(value));
  write_record(event_of(step, out));
}

void SummaryWriter::histogram(const std::string& tag, std::int64_t step, const Tensor& values) {
  const std::vector<double> numbers = cast(values, f64).to_vector<double>();
  const ProtobufWriter histogram = histogram_of(numbers);
  if (histogram.written().empty()) return;
  ProtobufWriter out;
  out.bytes(1, tag);
  out.message(5, histogram);
  write_record(event_of(step, out));
}

void SummaryWriter::image(const std::string& tag, std::int64_t step, const Tensor& image) {
  const std::string encoded = encode_png(image, "SummaryWriter::image");
  ProtobufWriter picture, out;
  picture.integer(1, image.shape()[0]);
  picture.integer(2, image.shape()[1]);
  picture.integer(3, image.shape().rank() == 3 ? image.shape()[2] : 1);
  picture.bytes(4, encoded);
  out.bytes(1, tag);
  out.message(4, picture);
  write_record(event_of(step, out));
}

void SummaryWriter::text(const std::string& tag, std::int64_t step, const std::string& value, const std::string& plugin,
                         const std::string& content) {
  constexpr int string_type = 7, class_of_tensors = 2;
  ProtobufWriter tensor, named, metadata, out;
  tensor.integer(1, string_type);
  tensor.message(2, shape_of({}));
  tensor.bytes(8, value);
  named.bytes(1, plugin);
  named.bytes(2, content);
  metadata.message(1, named);
  metadata.integer(4, class_of_tensors);
  out.bytes(1, tag);
  out.message(8, tensor);
  out.message(9, metadata);
  write_record(event_of(step, out));
}

void SummaryWriter::graph(const std::vector<ShownNode>& nodes) {
  ProtobufWriter graph, versions, out = event();
  for (const ShownNode& node : nodes) graph.message(1, node_of(node));
  versions.integer(1, 22);  // of the producer
  graph.message(4, versions);
  out.bytes(4, graph.written());
  write_record(out.written());
}

}  // namespace gradus
