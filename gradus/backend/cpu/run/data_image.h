/// Images: the data of a thunk in an object file, which kernels read there in place. Bytes, and in them pointers to
/// other images and to code.
#pragma once
#include <cstring>
#include <type_traits>
#include "gradus/backend/cpu/run/thunk.h"

namespace gradus {

struct DataImage {
  struct Pointer {
    std::size_t offset;                        // in the bytes
    std::shared_ptr<const DataImage> to = {};  // and how far behind its beginning; empty:
    std::size_t behind = 0;
    KernelFunction code = nullptr;  // code
  };
  std::vector<std::byte> bytes;
  std::vector<Pointer> pointers;

  static DataImage of_bytes(const void* data, std::size_t size) {
    DataImage image;
    image.bytes.resize(size);
    if (size > 0) std::memcpy(image.bytes.data(), data, size);
    return image;
  }
  static DataImage of_words(const void* data, std::int64_t words) {
    return of_bytes(data, static_cast<std::size_t>(words) * sizeof(std::int64_t));
  }
};

namespace image {

template <class T> constexpr bool is_vector = false;
template <class T> constexpr bool is_vector<std::vector<T>> = true;

template <class T> void add_pointers(DataImage& image, const void* base, const T& part);

/// A vector is three pointers: to its elements, behind the last one, behind its memory.
template <class T> void add_vector(DataImage& image, const void* base, const std::vector<T>& elements) {
  static_assert(sizeof elements == 3 * sizeof(void*) && !std::is_same_v<T, bool>);
  const auto offset =
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&elements) - static_cast<const std::byte*>(base));
  const std::size_t size = elements.size() * sizeof(T);
  DataImage inner = DataImage::of_bytes(elements.data(), size);
  for (const T& element : elements) add_pointers(inner, elements.data(), element);
  const auto to = std::make_shared<const DataImage>(std::move(inner));
  for (std::size_t which = 0; which < 3; ++which)
    image.pointers.push_back({.offset = offset + which * sizeof(void*), .to = to, .behind = which == 0 ? 0 : size});
}

/// A type that is not trivially copyable lists its vectors: for_each_vector(part, visit), found beside its type.
template <class T> void add_pointers(DataImage& image, const void* base, const T& part) {
  if constexpr (is_vector<T>) add_vector(image, base, part);
  else if constexpr (!std::is_trivially_copyable_v<T>)
    for_each_vector(part, [&](const auto& inner) { add_pointers(image, base, inner); });
}

}  // namespace image

/// The image of a T: of plain numbers, or with vectors of such.
template <class T> DataImage image_of(const void* data) {
  DataImage made = DataImage::of_bytes(data, sizeof(T));
  image::add_pointers(made, data, *static_cast<const T*>(data));
  return made;
}

}  // namespace gradus
