/// Packed strings are numbers of i64 (the rank, the extents, the lengths), then the text.
#include "gradus/data/strings.h"
#include <cstring>
#include <numeric>
#include "gradus/base/error.h"
#include "gradus/data/on_processor.h"
#include "gradus/function/trace.h"

namespace gradus {
namespace {

void print_strings(std::ostream& out, const Strings& strings, int axis, std::size_t& next) {
  if (axis == strings.shape().rank()) {
    out << '"' << printable(strings.values()[next++], true) << '"';
    return;
  }
  out << '[';
  for (std::int64_t i = 0; i < strings.shape()[axis]; ++i) {
    if (i > 0) out << ", ";
    print_strings(out, strings, axis + 1, next);
  }
  out << ']';
}

/// Reads what packed() wrote, and never past its end.
class PackedReader {
 public:
  explicit PackedReader(const Tensor& packed) : rest_(packed.host<char>(), packed.bytes()) {}
  std::int64_t number() {
    std::int64_t n = 0;
    std::memcpy(&n, take(sizeof n).data(), sizeof n);
    require<DataError>(n >= 0, "strings of a data set: a size is ", n);
    return n;
  }
  std::string_view take(std::size_t bytes) {
    require<DataError>(bytes <= rest_.size(), "strings of a data set: they are cut off");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  /// How many numbers may still come.
  std::int64_t most_numbers() const { return static_cast<std::int64_t>(rest_.size() / sizeof(std::int64_t)); }

 private:
  std::string_view rest_;
};

}  // namespace

Strings::Strings(std::initializer_list<std::string_view> values)
    : shape_{static_cast<std::int64_t>(values.size())}, values_(values.begin(), values.end()) {}
Strings::Strings(std::vector<std::string> values) : shape_{std::ssize(values)}, values_(std::move(values)) {}
Strings::Strings(const Shape& shape, std::vector<std::string> values) : shape_(shape), values_(std::move(values)) {
  require(shape_.size() == size(), "Strings: ", size(), " strings for the shape ", brackets(shape_), ", which has ",
          shape_.size(), " elements");
}

const std::string& Strings::item() const {
  require(size() == 1, "Strings: item() of ", size(), " strings, shape ", brackets(shape_), "; expected one");
  return values_[0];
}

Strings Strings::operator[](std::int64_t index) const {
  require(shape_.rank() > 0, "Strings: a scalar has no element ", index, "; take item()");
  const std::int64_t count = shape_[0], at = index < 0 ? index + count : index;
  require<OutOfRange>(at >= 0 && at < count, "Strings: index ", index, " of ", count, " along axis 0");
  Shape shape = shape_;
  shape.erase(0);
  const std::ptrdiff_t each = shape.size();
  return {shape, {values_.begin() + at * each, values_.begin() + (at + 1) * each}};
}

std::ostream& operator<<(std::ostream& out, const Strings& strings) {
  std::size_t next = 0;
  print_strings(out, strings, 0, next);
  return out;
}

Tensor detail::packed(const Strings& strings) {
  std::vector<std::int64_t> head{strings.shape().rank()};
  head.insert(head.end(), strings.shape().begin(), strings.shape().end());
  std::size_t bytes = 0;
  for (const std::string& value : strings.values()) {
    head.push_back(std::ssize(value));
    bytes += value.size();
  }
  const std::size_t before = head.size() * sizeof(std::int64_t);
  const Spec spec{u8, {static_cast<std::int64_t>(before + bytes)}};
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec), "strings of a data set");
  char* out = reinterpret_cast<char*>(buffer->data<std::byte>());
  std::memcpy(out, head.data(), before);
  out += before;
  for (const std::string& value : strings.values()) out = std::copy(value.begin(), value.end(), out);
  return on_processor(Tensor::of_buffer(spec, std::move(buffer)));
}

Strings detail::unpacked(const Tensor& packed) {
  PackedReader reader(packed);
  const std::int64_t rank = reader.number();
  require<DataError>(rank <= Shape::max_rank, "strings of a data set: their rank is ", rank);
  Shape shape;
  for (std::int64_t i = 0; i < rank; ++i) shape.push_back(reader.number());
  const std::int64_t count = shape.size();
  require<DataError>(count <= reader.most_numbers(), "strings of a data set: they are cut off");
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) lengths.push_back(reader.number());
  std::vector<std::string> values;
  for (const std::int64_t length : lengths) values.emplace_back(reader.take(static_cast<std::size_t>(length)));
  return {shape, std::move(values)};
}

void detail::require_no_trace(std::string_view what) {
  require(!Trace::current(), what,
          ": it is called while a function is traced, but strings live on the host, and the "
          "program would keep the ids of this one call; look strings up in the map of a data set of text, or before "
          "the function, and give it the ids");
}

}  // namespace gradus
