/// A list whose elements have numbers from 0 on. Numbers are int, since -1 says that there is none.
#pragma once
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

namespace gradus {

/// A number, which is not negative, as the standard library's index or size.
constexpr std::size_t at(std::signed_integral auto number) { return static_cast<std::size_t>(number); }

/// A vector that takes numbers as well.
template <class T> class Numbered : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  Numbered() = default;
  Numbered(std::vector<T> list) : std::vector<T>(std::move(list)) {}

  using std::vector<T>::operator[];
  decltype(auto) operator[](std::signed_integral auto number) { return (*this)[gradus::at(number)]; }
  decltype(auto) operator[](std::signed_integral auto number) const { return (*this)[gradus::at(number)]; }
};

}  // namespace gradus
