/// tf.train.Example, through the generated code of its schema.
#include <algorithm>
#include <cstring>
#include <limits>
#include <example.pb.h>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/tfrecord.h"

namespace gradus {
namespace {

template <class T> Tensor vector_of(DType dtype, const T* values, std::int64_t n) {
  Ref<Buffer> buffer = Buffer::allocate(n * size_of(dtype), "feature of an example");
  if (n > 0) std::memcpy(buffer->data(), values, static_cast<std::size_t>(n) * sizeof(T));
  return Tensor::of_buffer({dtype, {n}}, std::move(buffer));
}

Tensor tensor_of(const tfrecord::Feature& feature, const std::string& name, const std::string& place) {
  if (feature.has_float_list())
    return vector_of(f32, feature.float_list().value().data(), feature.float_list().value_size());
  if (feature.has_int64_list())
    return vector_of(i64, feature.int64_list().value().data(), feature.int64_list().value_size());
  require<DataError>(feature.has_bytes_list(), place, ": feature `", name, "` is empty: a list of no kind");
  const auto& strings = feature.bytes_list().value();
  require<DataError>(strings.size() == 1, place, ": feature `", name, "` holds ", strings.size(),
                     " byte strings, expected one");
  return vector_of(u8, strings[0].data(), static_cast<std::int64_t>(strings[0].size()));
}

void put(const Tensor& x, const std::string& name, tfrecord::Feature& feature) {
  const auto count = static_cast<int>(x.shape().size());
  if (x.dtype() == u8) {
    const auto bytes = x.span<std::uint8_t>();
    feature.mutable_bytes_list()->add_value(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else if (x.dtype() == f32) {
    feature.mutable_float_list()->mutable_value()->Add(x.host<float>(), x.host<float>() + count);
  } else if (x.dtype() == i64 || x.dtype() == i32) {
    with_type(x.dtype(), [&]<class T>(T) {
      for (int i = 0; i < count; ++i)
        feature.mutable_int64_list()->add_value(static_cast<std::int64_t>(x.host<T>()[i]));
    });
  } else {
    throw InvalidArgument(text("example_of: feature `", name, "` is ", x.spec(), ", expected u8, f32, i32 or i64"));
  }
}

}  // namespace

std::map<std::string, Tensor> parse_example(std::span<const std::byte> record, const std::string& place) {
  tfrecord::Example example;
  require<DataError>(record.size() <= std::numeric_limits<int>::max() &&
                         example.ParseFromArray(record.data(), static_cast<int>(record.size())),
                     place, ": its ", record.size(), " bytes are no tf.train.Example");
  std::map<std::string, Tensor> features;
  for (const auto& [name, feature] : example.features().feature()) features[name] = tensor_of(feature, name, place);
  return features;
}

std::string example_of(const std::map<std::string, Tensor>& features) {
  tfrecord::Example example;
  for (const auto& [name, x] : features) put(x, name, (*example.mutable_features()->mutable_feature())[name]);
  std::string out;
  example.SerializeToString(&out);
  return out;
}

}  // namespace gradus
