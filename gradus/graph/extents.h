/// Extents: which attributes of an op say how many or where. They are dimensions, or Shapes of them, and may be
/// symbolic: with others in their place the op is the same one at other sizes or places. An op without any that are
/// named here is taken as it is.
///
///   const bool has_extents = Extents::are<Slice>(&Slice::begin, &Slice::size);     // beside the rules of the op
///
/// Where that does not say it, two functions do.
#pragma once
#include <cstdint>
#include <span>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/graph/op.h"

namespace gradus {

class Extents {
 public:
  /// Two functions: one adds the extents of an op to `numbers`, the other makes the op with other extents.
  struct Access {
    void (*get)(const void* op, std::vector<std::int64_t>& numbers);
    AnyOp (*with)(const void* op, std::span<const std::int64_t> numbers);
  };
  /// Says how to access the extents of ops of type T. It is called at program start, and returns true.
  template <class T> static bool are(const Access& access) {
    enroll(detail::Described<T>::type(), access);
    return true;
  }
  template <class T, class... Field> static bool are(Field T::*... fields) {
    static const std::tuple members(fields...);
    const auto get = [](const void* op, std::vector<std::int64_t>& numbers) {
      T copy = detail::attributes_as<T>(op);
      for_each(copy, members, [&](std::int64_t& d) { numbers.push_back(d); });
    };
    const auto with = [](const void* op, std::span<const std::int64_t> numbers) {
      T other = detail::attributes_as<T>(op);
      std::size_t next = 0;
      for_each(other, members, [&](std::int64_t& d) { d = numbers[next++]; });
      return AnyOp::of(other);
    };
    return are<T>(Access{get, with});
  }

  /// Adds those of `op` to `numbers`. True if it has any.
  static bool add(const AnyOp& op, std::vector<std::int64_t>& numbers);
  /// `op`, which has extents, with these.
  static AnyOp replaced(const AnyOp& op, std::span<const std::int64_t> numbers);

 private:
  static void enroll(const OpType& type, const Access& access);
  static std::vector<std::pair<const OpType*, Access>>& all();
  static const Access* find(const OpType& type);

  template <class T, class Members, class Visit>
  static void for_each(T& op, const Members& members, const Visit& visit) {
    const auto each = [&](auto& field) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, Shape>) {
        for (int i = 0; i < field.rank(); ++i) {
          std::int64_t d = field[i];
          visit(d);
          field.set(i, d);
        }
      } else {
        visit(field);
      }
    };
    std::apply([&](auto... member) { (each(op.*member), ...); }, members);
  }
};

}  // namespace gradus
